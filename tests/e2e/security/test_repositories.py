"""An agent that writes files has nothing run by that: neither by its tree nor by the repository, whoever comes next."""

from pathlib import Path

from claudomator_py.domain.requests import RestartRequest
from claudomator_py.domain.retention import CleanupRequest
from tests.e2e.repositories import done, git, spec
from tests.e2e.site import Site


def test_what_an_agent_wrote_for_git_is_not_run_after_its_run_by_a_retry_or_a_cleanup(site: Site) -> None:
    shop, evil, ran = site.root / "shop", site.root / "evil", site.root / "ran"
    shop.mkdir()
    git(shop, "init", "-q", "-b", "main")
    (shop / ".gitattributes").write_text("* filter=own\n")
    git(shop, "add", "--all")
    git(shop, "commit", "-q", "-m", "first")
    git(shop, "clone", "-q", "--bare", str(shop), str(evil))
    commands = f'[core]\\n fsmonitor = "touch {ran}"\\n[filter "own"]\\n clean = "touch {ran}; cat"\\n'
    commands += f' smudge = "touch {ran}; cat"\\n'
    swaps = f"printf 'gitdir: {evil}\\n' > .git; printf '{commands}' >> {evil}/config; exit 1"
    poisons = f"printf '{commands}' >> {shop}/.git/config; echo new >> .gitattributes"
    daemon = site.start().ready()
    again = {"max_attempts": 2, "backoff": "10ms"}
    done(site, daemon, spec(shop, "swaps", swaps, retry=again), spec(shop, "poisons", poisons))
    done(site, daemon, spec(shop, "next", "true"))

    tasks = {view.name: daemon.client.task(view.id) for view in daemon.client.all_tasks()}
    swapped, poisoned = tasks["swaps"].worktree, tasks["poisons"].worktree
    assert (tasks["swaps"].state, tasks["swaps"].reason) == ("FAILED", "setup_failed"), "the retry finds it"
    assert swapped is not None
    assert swapped.standing == "unknown"
    assert "its .git file was changed, and leads elsewhere" in swapped.detail
    assert "its .git file was changed" in (tasks["swaps"].reason_text or "")
    assert poisoned is not None
    assert (poisoned.standing, poisoned.changed) == ("dirty", 1)
    assert tasks["next"].state == "COMPLETED"

    cleanup_items = daemon.client.clean_up(CleanupRequest.model_validate({"older_than": "0s"})).items
    whys = {item.task: item.why for item in cleanup_items if item.kind == "worktree"}
    assert "git is not run there" in whys["swaps"]
    assert whys["next"] == "it has no changes"
    assert Path(swapped.path).is_dir()
    daemon.client.restart("next", RestartRequest())
    site.drain(daemon)
    assert not ran.exists()
