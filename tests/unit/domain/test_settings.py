"""From a mapping to settings."""

from typing import Any

import pytest

from claudomator_py.agents.kinds import KINDS
from claudomator_py.domain.agent import ModelChoice, Price, Tier
from claudomator_py.domain.errors import Path
from claudomator_py.domain.remote import Protocol
from claudomator_py.schema.agent_settings import FOUND_KINDS, SUPPORTED_KINDS, default_agent
from claudomator_py.schema.configfile import parse_settings
from claudomator_py.schema.routing_settings import Preset
from claudomator_py.schema.settings import (
    AfterAccept,
    NearLimit,
    Settings,
    TypeHint,
    WhenAllLimited,
    settings_hash,
)


def settings(**keys: object) -> Settings:
    parsed = parse_settings(keys)
    assert isinstance(parsed, Settings), parsed
    return parsed


def refusals(**keys: object) -> list[str]:
    parsed = parse_settings(keys)
    assert isinstance(parsed, list), parsed
    return [problem.render() for problem in parsed]


def test_every_key_is_optional() -> None:
    plain = settings()

    assert plain.inbox.paths == ("tasks",)
    assert plain.inbox.after_accept is AfterAccept.KEEP
    assert (plain.state_dir, plain.database, plain.workdir_roots) == (None, "sqlite", ())
    assert (plain.http.host, plain.http.port) == ("127.0.0.1", 8484)
    assert (plain.concurrency.total, plain.concurrency.per_workdir) == (4, 1)
    assert (plain.concurrency.share, plain.concurrency.remote_total, plain.concurrency.remote_share) == (2, 16, 8)
    assert (plain.balancing.type_hint, plain.balancing.when_all_limited) == (TypeHint.PREFER, WhenAllLimited.WAIT)
    assert (plain.limits.output_cap, plain.limits.grace) == (2**28, 10_000)
    assert (plain.agents, plain.agents_configured) == ({}, False)


def test_every_key_is_read() -> None:
    full = settings(
        inbox={"paths": ["a", "b"], "after_accept": "move"},
        state_dir=".claudomator",
        database="postgresql://u@h/n",
        workdir_roots="~/src",
        http={"listen": "[::1]:0"},
        concurrency={"total": 8, "per_workdir": 2},
        balancing={"type_hint": "ignore", "when_all_limited": "try"},
        limits={"output_cap": "1GiB", "grace": "3s", "min_free": "0B"},
        classifier={"kind": "none"},
        policy=[],
        routing={"preset": "classic", "specialists": "roles", "encoder": {"kind": "openai", "timeout": "2s"}},
    )

    assert full.inbox.paths == ("a", "b")
    assert full.inbox.after_accept is AfterAccept.MOVE
    assert full.workdir_roots == ("~/src",)
    assert (full.http.host, full.http.port) == ("::1", 0)
    assert (full.routing.preset, full.routing.specialists) == (Preset.CLASSIC, ("roles",))
    assert (full.routing.encoder.model_name, full.routing.encoder.timeout) == ("text-embedding-3-small", 2_000)
    assert (full.limits.output_cap, full.limits.grace, full.limits.min_free) == (2**30, 3_000, 0)


@pytest.mark.parametrize(("total", "share"), [(1, 1), (2, 1), (3, 1), (4, 2), (9, 4)])
def test_an_organisation_has_half_of_the_slots_where_nothing_is_said(total: int, share: int) -> None:
    concurrency = settings(concurrency={"total": total, "remote": total}).concurrency
    assert (concurrency.share, concurrency.remote_share) == (share, share)
    concurrency = settings(
        concurrency={"total": total, "per_organisation": total, "remote_per_organisation": 3}
    ).concurrency
    assert (concurrency.share, concurrency.remote_total, concurrency.remote_share) == (total, 16, 3)
    assert settings(concurrency={"total": 20 * total}).concurrency.remote_total == 20 * total


def test_a_share_of_more_than_there_is_is_refused() -> None:
    (local, remote) = refusals(concurrency={"total": 3, "per_organisation": 4, "remote_per_organisation": 17})
    text = "concurrency.per_organisation: 4 is more than `concurrency.total`, which is 3; write 3 at most, or raise "
    assert local == f"{text}`concurrency.total`"
    text = (
        "concurrency.remote_per_organisation: 17 is more than `concurrency.remote`, which is 16; write 16 at most, or "
    )
    assert remote == f"{text}raise `concurrency.remote`"
    assert "must be at least 1" in refusals(concurrency={"per_organisation": 0})[0]


def test_an_agent_named_like_a_kind_is_of_that_kind() -> None:
    agents = settings(agents={"claude": None, "second": {"kind": "claude", "account": "work"}}).agents

    assert agents["claude"] == default_agent("claude")
    assert agents["claude"].command == ("claude",)
    assert agents["claude"].models[Tier.POWERFUL] == ModelChoice(model="opus")
    assert (agents["second"].kind, agents["second"].account) == ("claude", "work")


def test_a_model_cli_is_open_to_balancing_and_a_command_is_not() -> None:
    agents = settings(
        agents={
            "claude": {},
            "lint": {"kind": "command", "command": "make lint"},
            "simulated": {"script": "exit 0"},
            "open": {"kind": "command", "command": ["x"], "auto_select": True},
            "closed": {"kind": "claude", "auto_select": False},
        }
    ).agents

    chosen = {name: agent.auto_select for name, agent in agents.items()}
    assert chosen == {"claude": True, "lint": False, "simulated": False, "open": True, "closed": False}
    assert agents["lint"].command == ("make", "lint")


def test_a_model_is_a_name_or_a_name_with_an_effort() -> None:
    models: dict[str, Any] = {"fast": "a", "balanced": {"model": "b", "effort": "high"}}
    agent = settings(agents={"claude": {"models": models}}).agents["claude"]

    assert agent.models == {Tier.FAST: ModelChoice(model="a"), Tier.BALANCED: ModelChoice(model="b", effort="high")}


def test_the_agents_of_all_model_clis_work_without_a_word() -> None:
    agents = {kind: default_agent(kind) for kind in FOUND_KINDS}

    assert [agent.command for agent in agents.values()] == [(kind,) for kind in FOUND_KINDS]
    assert tuple(kind for kind, info in KINDS.items() if info.asks_model and info.command) == FOUND_KINDS
    assert agents["gemini"].models[Tier.FAST] == ModelChoice(model="flash-lite")
    assert agents["codex"].models[Tier.POWERFUL] == ModelChoice(model="gpt-6.1-sol", effort="high")
    assert agents["opencode"].models == {}
    assert all(agent.auto_select for agent in agents.values())


def test_prices_are_per_model() -> None:
    prices: dict[str, Any] = {"gpt-6-sol": {"input": 1, "output": 4.5}}
    agent = settings(agents={"codex": {"prices": prices}}).agents["codex"]

    assert agent.prices == {"gpt-6-sol": Price(input=1.0, output=4.5)}


def test_no_agents_is_not_the_same_as_none_named() -> None:
    assert settings(agents={}).agents_configured
    assert not settings().agents_configured


REMOTE = {"url": "https://docs.example.org/a2a"}
TOKEN = {"scheme": "bearer", "secret": "DOCS_TOKEN"}
REFUSED: list[tuple[dict[str, object], str]] = [
    ({"inbx": {}}, "inbx: is not a known key; did you mean `inbox`?"),
    ({"agents_configured": True}, "agents_configured: is not a known key"),
    ({"inbox": {"paths": []}}, "inbox.paths: is empty"),
    ({"inbox": {"after_accept": "delete"}}, "inbox.after_accept: `delete` is not one of keep, move"),
    ({"http": {"listen": "localhost"}}, "http.listen: `localhost` is not an address; write host:port"),
    ({"http": {"listen": 8484}}, "http.listen: `8484` is not an address; write host:port"),
    ({"http": {"listen": "127.0.0.1:99999"}}, "http.listen: `127.0.0.1:99999` is not an address"),
    ({"concurrency": {"total": 0}}, "concurrency.total: is too small; it must be at least 1"),
    ({"limits": {"output_cap": 5}}, "limits.output_cap: is not a size; write a number and a unit"),
    ({"limits": {"output_cap": "1KiB"}}, "limits.output_cap: is too small; it must be at least 1MiB"),
    ({"limits": {"grace": 5}}, "limits.grace: is the bare number 5"),
    ({"balancing": {"type_hint": "strict"}}, "balancing.type_hint: `strict` is not one of prefer, ignore"),
    (
        {"notify": {"phone": "https://ntfy.sh/x"}},
        "notify.phone: is the text `https://ntfy.sh/x`, but must be a mapping; write {url: https://ntfy.sh/x}",
    ),
    ({"agents": None}, "agents: is empty, but must be a mapping; write {claude: {}}"),
    ({"agents": ["claude"]}, "agents: is a list, but must be a mapping; write {claude: {}}"),
    ({"agents": {"My Agent": {"kind": "claude"}}}, "agents.My Agent: `My Agent` is not a name"),
    ({"agents": {"a": {}}}, f"agents.a.kind: is missing; write one of {', '.join(SUPPORTED_KINDS)}"),
    ({"agents": {"a": {"kind": "cluade"}}}, "agents.a.kind: `cluade` is not a known kind; did you mean `claude`?"),
    ({"agents": {"hub": {}}}, "agents.hub.kind: is missing; write one of claude"),
    ({"agents": {"a": {"kind": "remote"}}}, "agents.a.kind: `remote` is not a known kind; write `a2a`"),
    ({"agents": {"a": {"kind": "command"}}}, "agents.a.command: is missing; write [program, argument]"),
    ({"agents": {"claude": {"comand": "x"}}}, "agents.claude.comand: is not a known key; did you mean `command`?"),
    ({"agents": {"claude": {"script": "x"}}}, "agents.claude.script: has no meaning for kind `claude`; remove it"),
    (
        {"agents": {"codex": {"background": True}}},
        "agents.codex.background: has no meaning for kind `codex`; remove it",
    ),
    ({"agents": {"codex": {"prices": {"a": {"input": 1}}}}}, "agents.codex.prices.a.output: is missing"),
    ({"agents": {"codex": {"prices": {"a": {"input": -1, "output": 1}}}}}, "agents.codex.prices.a.input: is too small"),
    ({"agents": {"codex": {"prices": {"a": {"input": "1", "output": 1}}}}}, "agents.codex.prices.a.input: is "),
    ({"agents": {"codex": {"prices": {"a": 1}}}}, "agents.codex.prices.a: is "),
    ({"agents": {"claude": {"fallback_model": ""}}}, "agents.claude.fallback_model: is empty"),
    ({"agents": {"codex": {"fallback_model": "a\nb"}}}, "agents.codex.fallback_model: "),
    ({"agents": {"claude": {"models": {"fst": "x"}}}}, "agents.claude.models.fst: `fst` is not one of fast, balanced"),
    ({"agents": {"claude": {"models": {"fast": "x"}}}}, "agents.claude.models: has no model for the default tier"),
    ({"agents": {"claude": {"models": {"fast": ""}}}}, "agents.claude.models.fast: is empty"),
    ({"agents": {"claude": {"max_concurrent": 0}}}, "agents.claude.max_concurrent: is too small"),
    ({"agents": {"claude": {"env": {"A": 1}}}}, "agents.claude.env.A: is the number 1, but must be text"),
    ({"agents": {"claude": {"pass_env": ["A B"]}}}, "agents.claude.pass_env[0]: `A B` is not a variable's name"),
    ({"agents": {"claude": {"env": {"A": "1"}, "pass_env": "A"}}}, "agents.claude.env.A: is in `pass_env`, too"),
    ({"agents": {"a2a": {}}}, "agents.a2a.url: is missing; write https://HOST/PATH"),
    ({"agents": {"a2a": {"url": "http://example.org"}}}, "agents.a2a.url: would be sent unencrypted; write https://"),
    ({"agents": {"a2a": {"url": "ftp://example.org"}}}, "agents.a2a.url: `ftp://example.org` is not an address"),
    (
        {"agents": {"a2a": {"url": "https://u:p@example.org"}}},
        "agents.a2a.url: contains credentials; name the variable",
    ),
    (
        {"agents": {"a2a": {**REMOTE, "protocol": "2.0"}}},
        "agents.a2a.protocol: `2.0` is not one of auto, 1.0, 0.3, post",
    ),
    (
        {"agents": {"a2a": {**REMOTE, "command": "x"}}},
        "agents.a2a.command: has no meaning for a remote agent; remove it",
    ),
    ({"agents": {"a2a": {**REMOTE, "authentication": {"scheme": "bearer"}}}}, "names no variable for scheme `bearer`"),
    ({"agents": {"a2a": {**REMOTE, "authentication": {"secret": "A"}}}}, "does not say how the secret is sent"),
    ({"agents": {"a2a": {**REMOTE, "authentication": {**TOKEN, "header": "X"}}}}, "is for scheme `apiKey` only"),
    ({"agents": {"a2a": {**REMOTE, "authentication": TOKEN, "env": {"DOCS_TOKEN": "x"}}}}, "agents.a2a.env: has DOCS_"),
    ({"agents": {"claude": REMOTE}}, "agents.claude.url: has no meaning for kind `claude`; remove it"),
    ({"routing": {"preset": "clasic"}}, "`clasic` is not one of calibrated, classic, none; did you"),
    (
        {"routing": {"encoder": {"kind": "hashed", "model": "m"}}},
        "routing.encoder: `model` has no meaning for kind `hash",
    ),
    ({"routing": {"default_specialist": "The one"}}, "routing.default_specialist: `The one` is not a name"),
    ({"policy": [{}]}, "policy[0].name: is missing; add it"),
    ({"policy": [{"name": "a"}]}, "policy[0]: demands nothing; add `deny`, `approve`, or another effect"),
    ({"policy": [{"name": "a", "deny": "no"}] * 2}, "policy: two rules are called `a`; give each a name of its own"),
    ({"policy": [{"name": "high-risk", "deny": "no"}]}, "policy[0]: `high-risk` is the name of a rule that is built"),
    ({"policy": [{"name": "model-risk", "deny": "no"}]}, "policy[0]: `model-risk` is the name of a rule that is built"),
    (
        {"policy": [{"name": "a", "deny": "no", "allow": True}]},
        "policy[0]: both allows and stops the task; make two rules of it",
    ),
    ({"policy": [{"name": "a", "approve": {}, "allow": True}]}, "policy[0]: both allows and stops the task"),
    (
        {"policy": [{"name": "a", "deny": "no", "when": 'task.riskk == "low"'}]},
        "policy[0].when: uses `task.riskk`, which no task has; did you mean `task.risk`?",
    ),
    (
        {"policy": [{"name": "a", "tier": {"floor": "powerful", "ceiling": "fast"}}]},
        "no tier is between `powerful` and",
    ),
    (
        {"agents": {"a": {"kind": "hub"}}},
        "agents.a.kind: `hub` is not a kind that can be configured; remove it: agents of that kind",
    ),
    ({"learning": {"rate": 2}}, "learning.rate: is too large; it must be at most 1"),
    ({"routing": {"answer_within": "400d"}}, "routing.answer_within: is too large; it must be at most 365d"),
    (
        {"policy": [{"name": "a", "approve": {"within": "1s"}}]},
        "policy[0].approve.within: is too small; it must be at least 1m",
    ),
    ({"learning": {"every": "1s"}}, "learning.every: is too small; it must be at least 10s"),
    ({"state_dir": "a\0"}, "state_dir: contains a NUL character"),
]


@pytest.mark.parametrize(("keys", "words"), REFUSED)
def test_a_refusal_names_field_problem_and_remedy(keys: dict[str, object], words: str) -> None:
    results = refusals(**keys)

    assert len(results) == 1
    assert words in results[0]
    assert "; " in results[0]


def test_a_refused_database_shows_no_password() -> None:
    (refusal,) = refusals(database="mysql://user:secret@host/name")
    assert "secret" not in refusal
    assert "postgresql://" in refusal


def test_all_problems_come_at_once_in_the_order_of_the_file() -> None:
    lines: dict[Path, int] = {("agents", "claude", "max_concurrent"): 2, ("inbx",): 5, ("http", "listen"): 3}
    mapping = {"inbx": 1, "http": {"listen": "x"}, "agents": {"claude": {"max_concurrent": "many"}}}

    parsed = parse_settings(mapping, lines)

    assert isinstance(parsed, list)
    assert [problem.line for problem in parsed] == [2, 3, 5]


def test_an_item_that_is_refused_does_not_make_its_list_empty() -> None:
    (refusal,) = refusals(notify={"it": {"kind": "command", "command": [False]}})
    assert refusal.startswith("notify.it.command[0]: is the truth value false")


def test_the_hash_follows_the_meaning() -> None:
    assert settings_hash(settings(limits={"grace": "10s"})) == settings_hash(settings(limits={"grace": "10000ms"}))
    assert settings_hash(settings(limits={"grace": "11s"})) != settings_hash(settings())


def test_a_kind_that_needs_configuration_has_no_default_agent() -> None:
    with pytest.raises(ValueError, match="command: is missing"):
        default_agent("command")


def test_a_remote_agent_is_asked_for_by_name_and_gets_the_secret_that_it_names() -> None:
    agent = settings(agents={"docs-bot": {"kind": "a2a", **REMOTE, "authentication": TOKEN, "skill": "say"}}).agents[
        "docs-bot"
    ]
    assert not agent.auto_select
    assert agent.pass_env == ("DOCS_TOKEN",)
    assert agent.remote is not None
    assert (agent.remote.url, agent.remote.protocol, agent.remote.skill) == (REMOTE["url"], Protocol.AUTO, "say")


def test_further_names_of_the_daemon_are_read_as_a_host_header_has_them() -> None:
    hosts = ["Box.example", "box.example:8443", "[fd00::1]:80", "10.0.0.7", "my_host"]
    named = settings(http={"allowed_hosts": hosts}).http.allowed_hosts
    assert named == ("box.example", "box.example:8443", "[fd00::1]:80", "10.0.0.7", "my_host")
    assert settings(http={"allowed_hosts": "box"}).http.allowed_hosts == ("box",)
    assert settings().http.allowed_hosts == ()


@pytest.mark.parametrize("host", ["*", "*:80", "0", "0.0.0.0", "0.0.0.0:8484", "[::]", "[::]:80", "[0:0:0:0:0:0:0:0]"])
def test_no_name_stands_for_every_host(host: str) -> None:
    (refusal,) = refusals(http={"allowed_hosts": [host]})
    assert refusal.startswith("http.allowed_hosts[0]: ")
    assert refusal.endswith("stands for every host, which would let any page in; name each host itself")


@pytest.mark.parametrize(
    ("host", "why"),
    [
        ("https://box.example", "is a URL or a path; write the host alone"),
        ("box.example/claudomator", "is a URL or a path; write the host alone"),
        ("box example", "is not a host"),
        ("box.example:0", "is not a host"),
        ("box.example:65536", "is not a host"),
        ("fd00::1", "is not a host; write it as in a URL, such as box.example or [fd00::1]:8443"),
        ("*.example", "is not a host"),
        ("-box", "is not a host"),
        ("", "is empty"),
        (8484, "is the number 8484"),
    ],
)
def test_what_is_no_host_is_told(host: object, why: str) -> None:
    (refusal,) = refusals(http={"allowed_hosts": [host]})
    assert why in refusal


def test_the_account_of_the_classifier_is_one_that_an_agent_has() -> None:
    agents = {"gemini": {}, "home": {"kind": "claude", "account": "private"}}

    def classifier(account: str) -> dict[str, str]:
        return {"kind": "gemini-api", "account": account}

    for account, shared in (("gemini/default", ("gemini", "default")), ("claude/private", ("claude", "private"))):
        assert settings(agents=agents, classifier=classifier(account)).classifier.shared_account == shared
    for account, why in (
        ("private", "`private` names no account; write kind/account, such as gemini/default"),
        ("gemni/default", "`gemni/default` names no account; write kind/account, such as gemini/default"),
        ("claude/privat", "no agent has the account `claude/privat`; did you mean `claude/private`?"),
    ):
        assert refusals(agents=agents, classifier=classifier(account)) == [f"classifier.account: {why}"]
    assert settings(classifier=classifier("gemini/default")).classifier.account == "gemini/default"
    assert Settings().classifier.shared_account is None


def test_the_agents_of_a_rule_are_configured_or_kinds() -> None:
    def rule(**effects: object) -> dict[str, object]:
        return {"name": "r", "when": "true", **effects}

    agents = {"home": {"kind": "claude"}}
    for names in ({"agents": ["home", "claude", "codex", "hub"]}, {"exclude_agents": ["home"]}):
        assert len(settings(agents=agents, policy=[rule(**names)]).policy) == 1
    assert refusals(agents=agents, policy=[rule(agents=["claude", "hone"], exclude_agents=["gemni"])]) == [
        "policy[0].agents: no agent or kind `hone` is configured; did you mean `home`?",
        "policy[0].exclude_agents: no agent or kind `gemni` is configured; did you mean `gemini`?",
    ]
    assert settings(policy=[rule(agents=["on-path"])]).policy, "those on PATH are found later"


def test_the_simulated_agent_is_chosen_by_name_unless_a_configuration_says_otherwise() -> None:
    assert not default_agent("simulated").auto_select
    assert settings(agents={"simulated": {"auto_select": True}}).agents["simulated"].auto_select


def test_what_balancing_does_by_default() -> None:
    balancing = settings(balancing={"near_limit": "avoid", "prefer_wait": "0s"}).balancing
    assert (balancing.near_limit, balancing.prefer_wait) == (NearLimit.AVOID, 0)
    assert (Settings().balancing.near_limit, Settings().balancing.prefer_wait) == (NearLimit.TIE_BREAK, 120_000)
    (problem,) = refusals(balancing={"near_limit": "sometimes"})
    assert "balancing.near_limit" in problem


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
        ("https://otlp.example/eu/", "https://otlp.example/eu/v1/traces"),
        ("http://[::1]:4318/v1/traces", "http://[::1]:4318/v1/traces"),
    ],
)
def test_spans_go_below_the_collectors_address(endpoint: str, url: str) -> None:
    assert settings(telemetry={"endpoint": endpoint}).telemetry.traces_url == url


def test_without_a_collector_there_are_no_spans() -> None:
    assert settings().telemetry.traces_url is None


@pytest.mark.parametrize(
    ("endpoint", "words"),
    [
        ("127.0.0.1:4318", "is not the URL of a collector; write http://host:4318"),
        ("ftp://host", "is not the URL of a collector; write http://host:4318"),
        ("http://", "is not the URL of a collector; write http://host:4318"),
        ("https://me:hunter2@host", "has more than an address; name a variable in headers_env"),
        ("https://host/?key=hunter2", "has more than an address; name a variable in headers_env"),
    ],
)
def test_what_is_no_collector_is_refused_and_not_shown(endpoint: str, words: str) -> None:
    (refused,) = refusals(telemetry={"endpoint": endpoint})
    assert refused.startswith("telemetry.endpoint")
    assert words in refused
    assert "hunter2" not in refused


def test_a_rule_may_say_no_more_than_that_somebody_approves() -> None:
    text = settings(policy=[{"name": "a", "approve": True}])
    assert text.policy == settings(policy=[{"name": "a", "approve": {}}]).policy
    assert text.policy[0].effects == ("approve",)
