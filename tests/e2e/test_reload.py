"""SIGHUP: a good configuration is taken into use while runs go on, a bad one changes nothing and is told."""

import os
import shlex
import signal
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

from claudomator_py.sources.inbox.claims import Claims
from tests.e2e.reloading import configuration, events, reload
from tests.e2e.scenarios_support import document, ended, in_state, started, why
from tests.e2e.site import REPOSITORY, Site
from tests.patience import PATIENCE_S, wait_until


def until(path: Path) -> str:
    """What a run does that goes on until that file is there."""
    return f"do: until [ -e {path} ]; do sleep 0.05; done"


def shell(site: Site, **changes: Any) -> dict[str, Any]:
    """The agent ``sh`` of the site, changed."""
    return {"kind": "command", "command": site.ledger.agent, "auto_select": True, "max_concurrent": 4, **changes}


def test_slots_and_agents_change_without_a_restart(site: Site) -> None:
    site.configure(concurrency={"total": 1})
    daemon = site.start().ready()
    go_on = site.root / "go-on"
    for name in ("one", "two"):
        site.drop(f"{name}.yaml", document(name, until(go_on)))
    started(site, 1)
    refusal = site.drop("three.yaml", document("three", agent="later")).with_name("three.yaml.error.txt")
    wait_until(refusal.exists, "the refusal of a task for an agent that is not there")
    payload = reload(site, daemon, concurrency={"total": 3}, agents={"sh": shell(site), "later": shell(site)})
    assert payload["needs_restart"] == []
    started(site, 3)
    assert [agent.name for agent in daemon.client.agents()] == ["sh", "later"]
    go_on.touch()
    assert ended(daemon, "three").agent == "later"


def test_a_removed_agent_finishes_what_it_runs_and_gets_nothing_new(site: Site) -> None:
    site.configure(concurrency={"total": 1})
    daemon = site.start().ready()
    go_on = site.root / "go-on"
    site.drop("one.yaml", document("one", until(go_on)))
    started(site, 1)
    site.drop("two.yaml", document("two"))
    in_state(daemon, "two", "QUEUED")
    reload(site, daemon, agents={"simulated": {"kind": "simulated"}})
    assert "requires agent sh, which is not configured" in why(daemon, "two")
    go_on.touch()
    assert ended(daemon, "one").state == "COMPLETED"
    assert daemon.client.task("two").state == "QUEUED"


def test_another_inbox_is_watched_and_the_former_is_not(site: Site) -> None:
    daemon = site.start().ready()
    site.drop("one.yaml", document("one"))
    ended(daemon, "one")
    reload(site, daemon, inbox={"paths": ["other"]})
    wait_until(lambda: (site.root / "other").is_dir(), "the new inbox")
    site.drop("former.yaml", document("former"))
    (site.root / "other" / "two.yaml").write_text(document("two"))
    ended(daemon, "two")
    assert "former" not in [task.name for task in daemon.client.all_tasks()]
    reload(site, daemon)
    assert ended(daemon, "former").state == "COMPLETED"
    assert daemon.client.task("one").runs == 1, "a file that is back runs only what is new"


def test_a_refused_file_is_accepted_once_the_configuration_allows_it(site: Site) -> None:
    site.configure(workdir_roots=["work"])
    daemon = site.start().ready()
    elsewhere = site.root / "elsewhere"
    elsewhere.mkdir()
    path = site.drop("one.yaml", document("one", working_dir=str(elsewhere)))
    error = path.with_name("one.yaml.error.txt")
    wait_until(error.exists, "the refusal")
    reload(site, daemon, workdir_roots=["work", "elsewhere"])
    assert ended(daemon, "one").state == "COMPLETED"
    wait_until(lambda: not error.exists(), "the end of the refusal")


def test_a_bad_configuration_changes_nothing_and_is_told_until_it_is_mended(site: Site) -> None:
    daemon = site.start().ready()
    assert configuration(daemon).ok
    good = site.config_file.read_text()
    site.config_file.write_text(f"{good}# a remark\n")
    assert "its file has changed since" in configuration(daemon).detail
    site.config_file.write_text("inbox: {paths: [tasks]}\nconcurrency:\n  totl: 3\n")
    daemon.send(signal.SIGHUP)
    wait_until(lambda: not configuration(daemon).ok, "the refusal")
    result = configuration(daemon)
    assert f"{site.config_file}:3: concurrency.totl" in result.detail
    assert "did you mean `total`?" in result.detail
    assert result.remedy
    assert daemon.client.readiness().ready, "tasks are accepted and started all the same"
    wait_until(
        lambda: [check.name for check in daemon.client.status().trouble] == ["configuration"], "no other trouble"
    )
    assert f"{site.config_file}:3" in site.log_text()
    assert [agent.name for agent in daemon.client.agents()] == ["sh", "simulated"]
    site.drop("one.yaml", document("one"))
    assert ended(daemon, "one").state == "COMPLETED"
    site.config_file.unlink()
    daemon.send(signal.SIGHUP)
    wait_until(lambda: "cannot be read" in configuration(daemon).detail, "the refusal of a file that is gone")
    site.config_file.write_text(good)
    daemon.send(signal.SIGHUP)
    wait_until(lambda: configuration(daemon).ok, "the good one")
    assert configuration(daemon).detail == "in force as it was last read"
    assert daemon.client.status().trouble == ()


def test_what_needs_a_restart_is_said_and_the_rest_applied(site: Site) -> None:
    daemon = site.start().ready()
    url = daemon.client.base_url
    payload = reload(
        site, daemon, http={"listen": "127.0.0.1:1"}, state_dir="elsewhere", agents={"simulated": {"kind": "simulated"}}
    )
    assert payload["needs_restart"] == ["http", "state_dir"]
    assert "needs a restart: http, state_dir" in configuration(daemon).detail
    assert 'needs_restart="http, state_dir"' in site.log_text()
    assert [agent.name for agent in daemon.client.agents()] == ["simulated"]
    assert site.endpoint == url
    assert not (site.root / "elsewhere").exists()


def test_closing_the_terminal_of_a_daemon_is_its_end_and_no_reload(site: Site) -> None:
    ours, its = os.openpty()
    line = [*site.command.words, "serve"]
    environ = {"PATH": os.environ["PATH"], "HOME": str(site.root / "home"), "PYTHONPATH": str(REPOSITORY)}
    # A new session, whose first terminal to be opened is its own.
    script = f"exec <{os.ttyname(its)} >{site.log_file} 2>&1; exec {shlex.join(line)}"
    process = subprocess.Popen(["setsid", "sh", "-c", script], env=environ, cwd=site.root)
    try:
        wait_until(lambda: "agent_ready" in site.log_text(), "the daemon", PATIENCE_S)
        wait_until(lambda: site.endpoint, "its endpoint")
        process.send_signal(signal.SIGHUP)
        wait_until(lambda: events(site, "config_reloaded"), "a reload")
        os.close(its)
        os.close(ours)
        assert process.wait(PATIENCE_S) == 0
    finally:
        process.kill()
        process.wait()
    assert len(events(site, "config_reloaded")) == 1


def test_equal_settings_have_equal_hashes(site: Site) -> None:
    daemon = site.start().ready()
    hashes = [reload(site, daemon, concurrency={"total": total})["hash"] for total in (2, 3, 2)]
    assert hashes[0] == hashes[2] != hashes[1]


def test_an_inbox_belongs_to_one_daemon(site: Site) -> None:
    daemon = site.start().ready()
    site.configure(state_dir="another-state")
    second = site.start()
    assert second.wait() == 1
    assert f"inbox {site.inbox}: another daemon" in site.log_text()
    assert "stop that one, or give each daemon an inbox of its own" in site.log_text()

    other = site.root / "other"
    other.mkdir()
    theirs = Claims()
    theirs.take_all([str(other)])
    site.configure(inbox={"paths": ["tasks", "other"]})
    daemon.send(signal.SIGHUP)
    wait_until(lambda: not configuration(daemon).ok, "the refusal")
    assert f"inbox {other}: another daemon" in configuration(daemon).detail
    theirs.keep_only(())
    reload(site, daemon, inbox={"paths": ["other"]})
    assert theirs.take(str(other)) is not None
    assert theirs.take(str(site.inbox)) is None, "it was given up"
    theirs.keep_only(())


def test_a_broken_configuration_keeps_no_command_from_the_daemon(site: Site) -> None:
    daemon = site.start().ready()
    site.drop("one.yaml", document("one", "simulate: outcome=hang", agent="simulated"))
    in_state(daemon, "one", "RUNNING")
    home = str(site.root / "home")
    commands = (("status",), ("drain",), ("undrain",), ("show", "one"), ("replay",), ("cancel", "one", "--yes"))
    assert [site.command(*words, HOME=home).stderr for words in commands[:3]] == ["", "", ""]
    site.config_file.write_text("concurency: {total: 2}\n")
    for words in commands:
        done = site.command(*words, HOME=home)
        assert done.returncode == 0
        assert f"{site.config_file}:1: concurency" in done.stderr
    done = site.command("validate", "tasks/one.yaml", HOME=home)
    assert (done.returncode, done.stdout) == (1, "")
    stdout = site.command("doctor", "-o", "json", HOME=home).stdout
    assert '"daemon: store"' in stdout, "the daemon that runs is looked at"
    assert "no agent found on PATH" not in stdout, "nobody knows what is configured"
    elsewhere = replace(site.command, home=site.work)
    assert elsewhere("status", HOME=home).returncode == 0
    site.config_file.unlink()
    assert site.command("status", HOME=home).returncode == 0
    daemon.stop()
    assert elsewhere("status", HOME=home).returncode == 3


def test_commands_that_read_the_configuration_take_that_of_the_only_daemon_from_anywhere(site: Site) -> None:
    rule = {"name": "no-haiku", "when": 'task.text.contains("haiku")', "deny": "No haikus here."}
    site.configure(policy=[rule])
    daemon = site.start().ready()
    elsewhere, home = replace(site.command, home=site.work), str(site.root / "home")
    site.drop("one.yaml", document("one", "simulate: outcome=success", agent="simulated"))
    in_state(daemon, "one", "COMPLETED")
    file = site.work / "two.yaml"
    file.write_text("instructions: Write a haiku.\n")
    assert "No haikus here." in elsewhere("policy", "test", str(file), HOME=home).stdout
    assert elsewhere("replay", HOME=home).stdout.startswith("1 of 1 placement")
    other, cards = site.work / "other.yaml", site.work / "cards"
    cards.mkdir()
    for text, says in (
        (f"routing: {{specialists: [{cards}]}}\n", True),
        ("routing: {shipped: false}\n", True),
        ("", False),
    ):
        other.write_text(text)
        stderr = elsewhere("replay", "--config", str(other), HOME=home).stderr
        assert (f"The cards that {other} would read are not used" in stderr) is says
    assert str(site.config_file) in elsewhere("doctor", "-o", "json", HOME=home).stdout
    site.config_file.write_text("policy: {}\n")
    assert elsewhere("policy", "test", str(file), HOME=home).returncode == 1, "nothing is judged by other rules"
    daemon.stop()
