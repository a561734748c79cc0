"""Cheap models over HTTP: the Gemini API, and the OpenAI API, which many servers offer."""

from collections.abc import Mapping
from typing import Any

from claudomator_py.json_http import post_json
from claudomator_py.outgoing import client
from claudomator_py.scheduler.classification import Cause, ModelFault, ModelQuestion

GEMINI_URL = "https://generativelanguage.googleapis.com"
OPENAI_URL = "https://api.openai.com/v1"
# A bound for structured output that loops; an answer needs far less.
MAX_OUTPUT_TOKENS = 512


class _OverHttp:
    """A model with its HTTP client. Thread-safe."""

    def __init__(self, model: str) -> None:
        self.model = model
        self.client = client()

    def close(self) -> None:
        """Close the connections."""
        self.client.close()


class GeminiApi(_OverHttp):
    """Kind ``gemini-api``: generateContent with a response schema (https://ai.google.dev/api/generate-content)."""

    def __init__(self, model: str, base_url: str | None, api_key: str) -> None:
        super().__init__(model)
        self._url = f"{(base_url or GEMINI_URL).rstrip('/')}/v1beta/models/{model}:generateContent"
        self._headers = {"x-goog-api-key": api_key}

    def ask(self, question: ModelQuestion, timeout_s: float) -> str:
        """Return the model's text. Raises ModelFault."""
        if not self._headers["x-goog-api-key"]:
            raise ModelFault(Cause.NOT_CONFIGURED, "there is no key; set the variable of classifier.api_key_env")
        body = {
            "contents": [{"role": "user", "parts": [{"text": question.prompt}]}],
            "generationConfig": {
                "temperature": 0,
                "maxOutputTokens": MAX_OUTPUT_TOKENS,
                "responseMimeType": "application/json",
                "responseSchema": question.answer,
            },
        }
        answer = post_json(self.client, self._url, body, self._headers, timeout_s)
        return _text_at(answer, "candidates", 0, "content", "parts", 0, "text")


class OpenAiApi(_OverHttp):
    """Kind ``openai``: chat completions with a JSON schema, on OpenAI or any compatible server, local ones included.
    Format: https://platform.openai.com/docs/api-reference/chat/create"""

    def __init__(self, model: str, base_url: str | None, api_key: str | None) -> None:
        super().__init__(model)
        self._url = f"{(base_url or OPENAI_URL).rstrip('/')}/chat/completions"
        self._headers = {"authorization": f"Bearer {api_key}"} if api_key else {}

    def ask(self, question: ModelQuestion, timeout_s: float) -> str:
        """Return the model's text. Raises ModelFault."""
        # In strict mode every property must be required, and additional ones forbidden.
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
        answer = post_json(self.client, self._url, body, self._headers, timeout_s)
        return _text_at(answer, "choices", 0, "message", "content")


def _text_at(answer: Any, *path: str | int) -> str:
    """Return the text at the path. Raises ModelFault if the answer has another shape."""
    body = answer
    try:
        for part in path:
            body = body[part]
    except (KeyError, IndexError, TypeError):
        place = ".".join(str(part) for part in path)
        raise ModelFault(Cause.GARBAGE, f"its answer has no {place}") from None
    if not isinstance(body, str):
        raise ModelFault(Cause.GARBAGE, "its answer is not a text")
    return body
