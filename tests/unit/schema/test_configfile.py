"""The configuration file: where it is found, what it says, whose it is."""

import os
from pathlib import Path

import pytest

from claudomator_py.schema.configfile import ConfigError, load_config, resolve_state_dir
from claudomator_py.schema.configpath import find_config, is_users_own
from claudomator_py.schema.settings import Settings


def write(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_the_nearest_configuration_wins(tmp_path: Path) -> None:
    cwd, home = tmp_path / "cwd", tmp_path / "home"
    named = write(tmp_path / "named.yaml")
    by_variable = write(tmp_path / "variable.yaml")
    local = write(cwd / "claudomator.yaml")
    own = write(home / ".config/claudomator/claudomator.yaml")
    xdg = write(tmp_path / "xdg/claudomator/claudomator.yaml")
    environ = {"HOME": str(home)}

    assert find_config(named, {**environ, "CLAUDOMATOR_CONFIG": str(by_variable)}, cwd) == named
    assert find_config(None, {**environ, "CLAUDOMATOR_CONFIG": str(by_variable)}, cwd) == by_variable
    assert find_config(None, environ, cwd) == local
    local.unlink()
    assert find_config(None, environ, cwd) == own
    assert find_config(None, {**environ, "XDG_CONFIG_HOME": str(tmp_path / "xdg")}, cwd) == xdg
    assert find_config(None, {**environ, "XDG_CONFIG_HOME": "relative"}, cwd) == own


def test_one_that_is_named_is_not_passed_over(tmp_path: Path) -> None:
    write(tmp_path / "claudomator.yaml")
    path = find_config(None, {"CLAUDOMATOR_CONFIG": "missing.yaml"}, tmp_path)

    assert path == tmp_path / "missing.yaml"
    with pytest.raises(ConfigError, match=r"missing.yaml: cannot be read: no such file or directory; name another"):
        load_config(path)


def test_without_a_file_there_are_defaults(tmp_path: Path) -> None:
    loaded = load_config(None, {}, tmp_path)

    assert (loaded.path, loaded.base_dir) == (None, tmp_path)
    assert loaded.settings.inbox.paths == (str(tmp_path / "tasks"),)
    assert not loaded.settings.agents_configured


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n"])
def test_an_empty_file_is_the_defaults(tmp_path: Path, text: str) -> None:
    loaded = load_config(write(tmp_path / "c.yaml", text), {})
    assert loaded.settings == load_config(None, {}, tmp_path).settings


def test_paths_are_under_the_file_s_folder(tmp_path: Path) -> None:
    text = """
inbox: {paths: [tasks, /srv/in, ~/in]}
state_dir: ./state
workdir_roots: ["~", ../src]
routing: {specialists: [roles, ~/roles]}
agents:
  lint: {kind: command, command: [bin/lint, a/b]}
  make: {kind: command, command: [make, a/b]}
  mine: {kind: command, command: [~/bin/x]}
"""
    loaded = load_config(write(tmp_path / "etc/c.yaml", text), {"HOME": "/home/u"})

    settings = loaded.settings
    assert loaded.base_dir == tmp_path / "etc"
    assert settings.inbox.paths == (str(tmp_path / "etc/tasks"), "/srv/in", "/home/u/in")
    assert settings.state_dir == str(tmp_path / "etc/state")
    assert settings.workdir_roots == ("/home/u", str(tmp_path / "src"))
    assert settings.routing.specialists == (str(tmp_path / "etc/roles"), "/home/u/roles")
    assert settings.agents["lint"].command == (str(tmp_path / "etc/bin/lint"), "a/b")
    assert settings.agents["make"].command == ("make", "a/b")
    assert settings.agents["mine"].command == ("/home/u/bin/x",)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            "inbox: {paths: [tasks]}\nhttp:\n  lisen: 127.0.0.1:1\nagents:\n  claude:\n    max_concurrent: none\n",
            [
                "c.yaml:3: http.lisen: is not a known key; did you mean `listen`?",
                "c.yaml:6: agents.claude.max_concurrent: is the text `none`, but must be a whole number; write digits",
            ],
        ),
        ("http: {port: 8484}\n", ["c.yaml:1: http.port: is not a known key; write `listen`"]),
        ("Rules: []\n", ["c.yaml:1: Rules: is not a known key; write `policy`"]),
        (
            "agents:\n  sh: {type: command, cmd: [sh], slots: 3}\n",
            [
                "c.yaml:2: agents.sh.type: is not a known key; write `kind`",
                "c.yaml:2: agents.sh.cmd: is not a known key; write `command`",
                "c.yaml:2: agents.sh.slots: is not a known key; write `max_concurrent`",
                "c.yaml:2: agents.sh.kind: is missing; write one of claude, ",
            ],
        ),
        (
            "policy: [{name: a, if: 'true', requires_approval: true}]\n",
            [
                "c.yaml:1: policy[0].if: is not a known key; write `when`",
                "c.yaml:1: policy[0].requires_approval: is not a known key; write `approve`",
            ],
        ),
        ("inbox: [\n", ["c.yaml:2:1: is not YAML: "]),
        ("- a\n", ["c.yaml:1: is a list, but a configuration is a mapping; write `key: value` lines"]),
        ("inbox: {}\n---\nhttp: {}\n", ["c.yaml:3: is a second document; write the configuration as one"]),
    ],
)
def test_a_bad_file_names_line_field_and_remedy(tmp_path: Path, text: str, lines: list[str]) -> None:
    path = write(tmp_path / "c.yaml", text)

    with pytest.raises(ConfigError) as caught:
        load_config(path, {})

    results = str(caught.value).splitlines()
    assert len(results) == len(lines) == len(caught.value.problems)
    for line, words in zip(results, lines, strict=True):
        assert line.startswith(f"{tmp_path}/{words}")


def test_a_folder_is_no_configuration(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: is a directory"):
        load_config(tmp_path, {})


def test_the_state_folder_s_order(tmp_path: Path) -> None:
    named = Settings(state_dir="state")
    environ = {"HOME": "/home/u", "STATE_DIRECTORY": "/var/lib/claudomator:/var/lib/other", "XDG_STATE_HOME": "/xdg"}

    assert resolve_state_dir(Path("/flag"), named, environ, tmp_path) == Path("/flag")
    assert resolve_state_dir(Path("~/flag"), named, environ, tmp_path) == Path("/home/u/flag")
    assert resolve_state_dir(None, named, environ, tmp_path) == tmp_path / "state"
    assert resolve_state_dir(None, Settings(), environ, tmp_path) == Path("/var/lib/claudomator")
    del environ["STATE_DIRECTORY"]
    assert resolve_state_dir(None, Settings(), environ, tmp_path) == Path("/xdg/claudomator")
    del environ["XDG_STATE_HOME"]
    assert resolve_state_dir(None, Settings(), environ, tmp_path) == Path("/home/u/.local/state/claudomator")


def test_a_file_is_the_user_s_own(tmp_path: Path) -> None:
    path = write(tmp_path / "c.yaml")
    path.chmod(0o644)
    assert is_users_own(path)

    path.chmod(0o646)
    assert not is_users_own(path)
    assert not is_users_own(tmp_path / "missing")
    assert not is_users_own(tmp_path)


@pytest.mark.needs_root
def test_a_file_of_someone_else_is_not_the_user_s_own(tmp_path: Path) -> None:
    path = write(tmp_path / "c.yaml")
    link = tmp_path / "link.yaml"
    link.symlink_to(path)

    os.chown(path, 4242, -1)
    assert not is_users_own(path, 1000)
    assert not is_users_own(link, 1000)
    assert is_users_own(path, 4242)

    os.chown(path, 1000, -1)
    os.chown(link, 4242, -1, follow_symlinks=False)
    assert not is_users_own(link, 1000)


def test_an_exit_code_is_a_key_as_it_stands(tmp_path: Path) -> None:
    agent = 'agents:\n  kimi: {kind: command, command: [kimi], exit_codes: {75: rate_limited, "76": auth}}\n'
    settings = load_config(write(tmp_path / "c.yaml", agent), {}).settings
    assert settings.agents is not None
    assert settings.agents["kimi"].output.exit_codes == {75: "rate_limited", 76: "auth"}
