"""Text for messages and records: cut to a length, and recognised again by its digest."""

import hashlib
import json


def cut(text: str, most: int) -> str:
    """Return the text; of one with more than ``most`` characters the beginning, with dots in the place of the rest."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def cut_line(text: str, most: int) -> str:
    """Return the text on one line, with each run of white space as a blank; cut as by ``cut``."""
    return cut(" ".join(text.split()), most)


def json_hash(value: object) -> str:
    """Return the SHA-256 of the value as JSON, in hexadecimal, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def marker_of(label: str, text: str) -> str:
    """Return a line to put before and after the text. As it is derived from the text, the text cannot contain it."""
    return f"{label}-{hashlib.sha256(text.encode(errors='replace')).hexdigest()[:16]}"
