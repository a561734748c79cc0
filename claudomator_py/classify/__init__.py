"""Creation of the configured classifier. Only the one in use is imported."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from claudomator_py.schema.settings import Classifier, ClassifierKind

if TYPE_CHECKING:
    from claudomator_py.classify.gemini_cli import GeminiCli
    from claudomator_py.classify.http import GeminiApi, OpenAiApi

CLI_VARIABLES = ("GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL")
"""Variables that the Gemini CLI gets in addition to those of every program."""


def tier_model(
    classifier: Classifier, environ: Mapping[str, str], for_cli: Mapping[str, str]
) -> "GeminiApi | OpenAiApi | GeminiCli | None":
    """Return the classifier, or None for kind ``none``. environ: has the API key; for_cli: the whole environment of a
    CLI's process."""
    key = environ.get(classifier.key_variable, "") if classifier.key_variable is not None else ""
    match classifier.kind:
        case ClassifierKind.NONE:
            return None
        case ClassifierKind.GEMINI_API:
            from claudomator_py.classify.http import GeminiApi

            return GeminiApi(classifier.model_name, classifier.base_url, key)
        case ClassifierKind.OPENAI:
            from claudomator_py.classify.http import OpenAiApi

            return OpenAiApi(classifier.model_name, classifier.base_url, key or None)
        case ClassifierKind.GEMINI_CLI:
            from claudomator_py.classify.gemini_cli import GeminiCli

            return GeminiCli(classifier.model_name, classifier.command, for_cli)
