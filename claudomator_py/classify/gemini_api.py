"""Kind ``gemini-api``: Gemini's generateContent with a response schema (https://ai.google.dev/api/generate-content)."""

import httpx

from claudomator_py.classify.answers import text_at
from claudomator_py.json_http import post_json
from claudomator_py.scheduler.classification import Cause, ModelFault, ModelQuestion

DEFAULT_BASE_URL = "https://generativelanguage.googleapis.com"
# Structured output can loop; an answer needs far less than this.
MAX_OUTPUT_TOKENS = 512


class GeminiApi:
    """Asks over HTTP. Safe to use from many threads."""

    def __init__(self, model: str, base_url: str | None, api_key: str) -> None:
        self.model = model
        self._url = f"{(base_url or DEFAULT_BASE_URL).rstrip('/')}/v1beta/models/{model}:generateContent"
        self._headers = {"x-goog-api-key": api_key}
        self._client = httpx.Client(trust_env=False, follow_redirects=False)

    def ask(self, question: ModelQuestion, timeout_s: float) -> str:
        """The model's text. Raises ModelFault."""
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
        answer = post_json(self._client, self._url, body, self._headers, timeout_s)
        return text_at(answer, "candidates", 0, "content", "parts", 0, "text")

    def close(self) -> None:
        """Let go of the connections."""
        self._client.close()
