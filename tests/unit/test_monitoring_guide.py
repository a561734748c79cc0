"""The monitoring guide names metrics, events and settings that there are."""

import re
from pathlib import Path

import yaml

from claudomator_py.api.metrics import FAMILIES
from claudomator_py.schema.configfile import parse_settings
from claudomator_py.schema.settings import Settings

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs/how-to/monitoring.md").read_text()
BLOCKS = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", GUIDE, re.DOTALL)]
SERIES = {
    f"{family.name}{suffix}": set(family.labels)
    for family in FAMILIES
    for suffix in (("_bucket", "_sum", "_count") if family.kind == "histogram" else ("",))
}


def test_every_metric_of_the_guide_exists_with_its_labels() -> None:
    named = re.findall(r"(claudomator_[a-z_]+)(?:\{([^}]*)\})?", GUIDE)
    assert len(named) > 15
    for name, selector in named:
        assert name in SERIES
        assert set(re.findall(r"(\w+)=", selector)) <= SERIES[name]


def test_every_alert_has_a_name_of_its_own_and_an_expression() -> None:
    rules = next(block["groups"][0]["rules"] for block in BLOCKS if "groups" in block)
    names = [rule["alert"] for rule in rules]
    assert len(names) == len(set(names)) > 8
    for rule in rules:
        assert rule["expr"].count("(") == rule["expr"].count(")")
        assert re.search(r"[<>=]", rule["expr"])


def test_the_settings_of_the_guide_are_valid() -> None:
    settings = next(block for block in BLOCKS if "log" in block)
    assert isinstance(parse_settings(settings), Settings)


def test_the_token_is_sent_as_prometheus_knows_how() -> None:
    job = next(block["scrape_configs"][0] for block in BLOCKS if "scrape_configs" in block)
    assert set(job["authorization"]) == {"credentials_file"}  # its scheme is Bearer unless said otherwise


def test_the_events_of_the_guide_are_logged() -> None:
    text = GUIDE[GUIDE.index("The events that matter most:") :].split("\n\n")[0]
    sources = "\n".join(path.read_text() for path in (ROOT / "claudomator_py").rglob("*.py"))
    fields = {"status", "reason", "until", "cause", "doing"}
    for event in set(re.findall(r"`([a-z_]+)`", text)) - fields:
        assert re.search(rf'\.(?:debug|info|warning|error|exception)\(\s*"{event}"', sources), event
