"""Real agent CLIs are kept within a reach, and what goes further is asked of a person, then let through: exactly it."""

from pathlib import Path

import pytest

from tests.e2e.scenarios_support import document, ended, in_state, last_run, why
from tests.fakes.http_api import Text
from tests.patience import wait_until
from tests.real_clis.clis import CLAUDE, CODEX, GEMINI, OPENCODE, QWEN, Cli, each
from tests.real_clis.place import END_S, Place


@each(CLAUDE, CODEX, GEMINI, OPENCODE, QWEN, with_settings=True)
def test_what_goes_too_far_is_asked_and_then_let_through_alone(place: Place, cli: Cli) -> None:
    acted = place.site.work / "acted"
    act = cli.shell(f"touch {acted}; git push --force origin main")
    place.api.script(act, Text("I may not."))
    daemon = place.start()
    place.drop("greet", permissions=cli.commands, reach="network")
    task = in_state(daemon, "greet", "NEEDS_INPUT", deadline_s=END_S)
    assert task.reason == "approval"
    assert not acted.exists()
    assert (task.reason_text or "").startswith(f"{cli.kind} asks to use ")
    assert f"(touch {acted}; git push --force origin main)" in (task.reason_text or "")
    first = last_run(daemon, "greet")
    place.api.script(act, cli.shell(f"touch {acted}2; git push origin :gone"), Text("One of two."))
    daemon.client.approve("greet")
    wait_until(lambda: last_run(daemon, "greet").id != first.id, "the next run", END_S)
    task = in_state(daemon, "greet", "NEEDS_INPUT", deadline_s=END_S)
    assert acted.exists()
    assert not place.site.work.joinpath("acted2").exists()
    assert "git push origin :gone" in (task.reason_text or "")
    assert "Write a greeting." in str(place.api.requests[-1].body), "it is the same conversation"


@each(CLAUDE, CODEX, GEMINI, OPENCODE, QWEN, with_settings=True)
@pytest.mark.parametrize("reach", ["network", "tree"])
def test_what_stays_within_is_not_disturbed(place: Place, cli: Cli, reach: str) -> None:
    work = "git add -A; git commit -qm 'npm publish: mend' --allow-empty; grep -r x . ; echo done > ok"
    place.api.script(place.writes(), cli.shell(work), Text("Done."))
    daemon = place.start()
    place.drop("greet", permissions=cli.commands, reach=reach)
    task = ended(daemon, "greet", END_S)
    assert (task.state, task.runs) == ("COMPLETED", 1), why(daemon, "greet")
    assert place.greeting.exists()
    assert (place.site.work / "ok").exists()


@each(CLAUDE, CODEX, GEMINI, OPENCODE, QWEN, with_settings=True)
def test_what_was_approved_is_what_the_script_did_then(place: Place, cli: Cli) -> None:
    work = place.site.work
    script, bin_ = work / "release.sh", work / "bin"
    bin_.mkdir()
    for name in ("npm", "kubectl"):
        (bin_ / name).write_text(f"#!/bin/sh\necho ran >> {work}/{name}.log\n")
        (bin_ / name).chmod(0o755)
    script.write_text(f"PATH={bin_}:$PATH\nnpm publish\n")
    run = cli.shell("sh release.sh")
    place.api.script(run, Text("I may not."))
    daemon = place.start()
    place.drop("greet", permissions=cli.commands, reach="network")
    task = in_state(daemon, "greet", "NEEDS_INPUT", deadline_s=END_S)
    assert "(sh release.sh)" in (task.reason_text or "")
    assert task.asks is not None
    assert task.asks.tools[0].beyond == "`npm publish` publishes a package, or changes a published one"
    first = last_run(daemon, "greet")
    more = cli.shell("echo kubectl delete namespace shop >> release.sh")
    place.api.script(run, more, run, Text("Once, and not twice."))
    daemon.client.approve("greet")
    wait_until(lambda: last_run(daemon, "greet").id != first.id, "the next run", END_S)
    task = in_state(daemon, "greet", "NEEDS_INPUT", deadline_s=END_S)
    assert (work / "npm.log").read_text() == "ran\n"
    assert not (work / "kubectl.log").exists()
    assert task.asks is not None
    assert "`kubectl delete namespace shop`" in (task.asks.tools[0].beyond or "")


def publishes(place: Place) -> Path:
    """A blog that ``make publish`` sends to its server; the file is there once it has been."""
    work = place.site.work
    acted, program = work / "acted", work / "bin" / "rsync"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho $@ >> {acted}\n")
    program.chmod(0o755)
    recipe = f"PATH={program.parent}:$$PATH rsync -a public/ web1.example.org:/srv/blog"
    (work / "Makefile").write_text(f"publish:\n\t{recipe}\n\nwipe:\n\t{recipe} --delete\n")
    return acted


@each(CLAUDE)
@pytest.mark.parametrize(
    "typed", ["make publish", "cd . && make publish 2>&1 | tail -5", "test -f Makefile && make publish"]
)
def test_what_a_task_says_that_it_will_run_is_approved_once(place: Place, cli: Cli, typed: str) -> None:
    acted = publishes(place)
    place.api.script(cli.shell(typed), Text("Published."))
    daemon = place.start()
    task = document(None, "Publish the blog with make publish.", agent=None, working_dir=str(place.site.work))
    place.site.drop("blog.yaml", task)
    held = in_state(daemon, "blog", "NEEDS_INPUT", deadline_s=END_S)
    assert held.asks is not None
    assert held.asks.commands == ("make publish",)
    assert "lets generalist start it and run `make publish` in its directory" in why(daemon, "blog")
    completed = place.site.command("approve", "blog")
    assert "Allowed: make publish" in completed.stderr
    task_view = in_state(daemon, "blog", "NEEDS_INPUT", "COMPLETED", "FAILED", deadline_s=END_S)
    assert (task_view.state, task_view.runs) == ("COMPLETED", 1), why(daemon, "blog")
    assert acted.exists()


@each(CLAUDE, CODEX)
def test_it_is_approved_alone(place: Place, cli: Cli) -> None:
    acted = publishes(place)
    fields = {"permissions": cli.commands, "reach": "network"}
    others = ["make wipe", "sh -c 'make() { make wipe; }; make publish'", "cd / && make publish", "make publish wipe"]
    place.api.script(*map(cli.shell, others), Text("No."))
    daemon = place.start()
    task = document(None, "Publish the blog with make publish.", agent=None, working_dir=str(place.site.work), **fields)
    place.site.drop("blog.yaml", task)
    in_state(daemon, "blog", "NEEDS_INPUT", deadline_s=END_S)
    daemon.client.approve("blog")
    wait_until(lambda: daemon.client.task("blog").runs == 1, "its run", END_S)
    held = in_state(daemon, "blog", "NEEDS_INPUT", "COMPLETED", "FAILED", deadline_s=END_S)
    assert held.asks is not None
    assert [tool.input for tool in held.asks.tools] == others
    assert not acted.exists()
