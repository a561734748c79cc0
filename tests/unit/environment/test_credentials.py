"""Credentials as variables: which ones, and which never."""

from pathlib import Path

from claudomator_py.environment.secrets import token_file, with_credentials


def test_what_the_environment_lacks_comes_from_the_folder(tmp_path: Path) -> None:
    files = {
        "ONE_KEY": "first\n",
        "TWO_KEY": "second",
        "LINES": "a\nb\n\n",
        "HOME": "/nowhere",
        "LC_ALL": "xx",
        "token": "an-operators-token",
        "not-a-variable": "x",
    }
    for name, value in files.items():
        (tmp_path / name).write_text(value)
    (tmp_path / "BINARY").write_bytes(b"\xff\xfe")
    (tmp_path / "ZERO").write_bytes(b"a\0b")
    (tmp_path / "LONG").write_bytes(b"x" * 70_000)
    (tmp_path / "FOLDER").mkdir()
    environ = {"CREDENTIALS_DIRECTORY": str(tmp_path), "TWO_KEY": "mine", "HOME": "/home/ann"}
    results = with_credentials(environ)
    assert results == {**environ, "ONE_KEY": "first", "LINES": "a\nb\n"}
    assert token_file(environ) == tmp_path / "token"


def test_without_a_folder_nothing_changes(tmp_path: Path) -> None:
    for environ in ({"A": "b"}, {"A": "b", "CREDENTIALS_DIRECTORY": str(tmp_path / "gone")}):
        assert with_credentials(environ) == environ
        assert token_file(environ) is None
