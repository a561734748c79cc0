"""What an assessment says of a text, in the text's own words."""

import pytest

from claudomator_py.domain.routing import Assessment, Risk, Sign


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ((), ""),
        (("Deploy it.",), "Deploy it"),
        (("Upload it, then force-push to main.", "force-push to main"), "Upload it, then force-push to main"),
        (("drop the database", "Delete all, and drop the database."), "Delete all, and drop the database"),
        (("Deploy it.", "Deploy it", "Pay them."), "Deploy it; Pay them"),
    ],
)
def test_what_was_seen_is_named_once(parts: tuple[str, ...], words: str) -> None:
    assert Assessment(Risk.HIGH, tuple((Sign.DOUBTFUL, part) for part in parts)).words == words
