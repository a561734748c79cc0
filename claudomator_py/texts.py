"""Text at a maximum length, for messages and records."""


def cut(text: str, most: int) -> str:
    """Return the text; of one with more than ``most`` characters the beginning, with dots in the place of the rest."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def cut_line(text: str, most: int) -> str:
    """Return the text on one line, with each run of white space as a blank; cut as by ``cut``."""
    return cut(" ".join(text.split()), most)
