"""Kind ``openai``: chat completions with a JSON schema, on OpenAI or any compatible server, local ones included.

Format: https://platform.openai.com/docs/api-reference/chat/create
"""

from collections.abc import Mapping

import httpx

from claudomator_py.classify.answers import text_at
from claudomator_py.json_http import post_json
from claudomator_py.scheduler.classification import ModelQuestion

DEFAULT_BASE_URL = "https://api.openai.com/v1"
MAX_OUTPUT_TOKENS = 512


class OpenAi:
    """Asks over HTTP. Safe to use from many threads."""

    def __init__(self, model: str, base_url: str | None, api_key: str | None) -> None:
        self.model = model
        self._url = f"{(base_url or DEFAULT_BASE_URL).rstrip('/')}/chat/completions"
        self._headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
        self._client = httpx.Client(trust_env=False, follow_redirects=False)

    def ask(self, question: ModelQuestion, timeout_s: float) -> str:
        """The model's text. Raises ModelFault."""
        # Strict means that each property is required, and nothing else is allowed.
        properties = question.answer["properties"]
        required = list(properties) if isinstance(properties, Mapping) else []
        schema = {**question.answer, "required": required, "additionalProperties": False}
        body = {
            "model": self.model,
            "messages": [{"role": "user", "content": question.prompt}],
            "max_completion_tokens": MAX_OUTPUT_TOKENS,
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "answer", "strict": True, "schema": schema},
            },
        }
        answer = post_json(self._client, self._url, body, self._headers, timeout_s)
        return text_at(answer, "choices", 0, "message", "content")

    def close(self) -> None:
        """Let go of the connections."""
        self._client.close()
