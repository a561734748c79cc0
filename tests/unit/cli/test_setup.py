"""Setting up: a configuration and a first task to begin with."""

from claudomator_py.documents.configfile import load_config
from claudomator_py.documents.taskfiles import parse_task_file
from tests.fakes.command import Command


def test_init_writes_what_the_daemon_accepts(offline: Command) -> None:
    done = offline("init", "new")
    assert done.returncode == 0
    assert done.stdout.splitlines() == ["new/claudomator.yaml", "new/tasks/hello.yaml"]
    assert "claudomator serve" in done.stderr
    folder = offline.home / "new"
    assert load_config(folder / "claudomator.yaml").settings.inbox.paths == (str(folder / "tasks"),)
    parsed = parse_task_file((folder / "tasks/hello.yaml").read_bytes(), "hello.yaml")
    assert (parsed.problems, [spec.name for spec in parsed.specs]) == ((), ["hello"])


def test_what_the_configuration_only_suggests_is_valid_too(offline: Command) -> None:
    offline("init")
    path = offline.home / "claudomator.yaml"
    lines = path.read_text().splitlines()
    keys = ("workdir_roots", "http", "concurrency", "agents", "balancing", "limits")
    shown = [
        line.removeprefix("# ") if line.startswith(("#  ", *(f"# {key}:" for key in keys))) else line for line in lines
    ]
    path.write_text("\n".join(shown) + "\n")
    settings = load_config(path).settings
    assert set(settings.agents) == {"claude", "lint"}
    plain = load_config(None).settings
    assert (settings.http, settings.concurrency, settings.limits) == (plain.http, plain.concurrency, plain.limits)


def test_init_never_overwrites(offline: Command) -> None:
    (offline.home / "claudomator.yaml").write_text("# mine\n")
    (offline.home / "tasks").mkdir()
    done = offline("init")
    assert (done.returncode, done.stdout) == (0, "")
    assert (offline.home / "claudomator.yaml").read_text() == "# mine\n"
    assert list((offline.home / "tasks").iterdir()) == []
    assert done.stderr.count("left as it is") == 2


def test_init_where_nothing_can_be_written(offline: Command) -> None:
    (offline.home / "file").write_text("")
    done = offline("init", "file/below")
    assert (done.returncode, done.stdout) == (1, "")
    assert "cannot be written" in done.stderr
