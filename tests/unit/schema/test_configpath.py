"""To which state folder a configuration leads, read without the rest of it."""

from pathlib import Path

import pytest

from claudomator_py.schema.configfile import load_config, resolve_state_dir
from claudomator_py.schema.configpath import KEYS, Unclear, configured_state_dir, state_folder
from claudomator_py.schema.settings import Settings


def written(folder: Path, text: str) -> Path:
    path = folder / "claudomator.yaml"
    path.write_text(text)
    return path


def test_the_keys_are_those_of_the_settings() -> None:
    assert Settings.model_fields.keys() - {"agents_configured", "reach_configured"} == KEYS


@pytest.mark.parametrize(
    "text",
    [
        "state_dir: here\n",
        "state_dir: ../here/../there/\n",
        "state_dir: ~/here\n",
        "state_dir: /srv/here\nhttp:\n  listen: 127.0.0.1:0\n",
        "agents:\n  mine: {kind: claude}\n",
        "{}\n",
    ],
)
def test_it_leads_where_the_whole_configuration_leads(tmp_path: Path, text: str) -> None:
    path, environ = written(tmp_path, text), {"HOME": str(tmp_path / "home")}
    loaded = load_config(path, environ, tmp_path)
    expected = resolve_state_dir(None, loaded.settings, environ, loaded.base_dir)
    assert state_folder(None, configured_state_dir(path, environ), environ, tmp_path) == expected


def test_what_is_wrong_elsewhere_does_not_matter(tmp_path: Path) -> None:
    assert configured_state_dir(written(tmp_path, "state_dir: x\nlimits: {grace: long}\n"), {}) == tmp_path / "x"


def test_what_is_unknown_beside_it_does_not_make_it_unclear(tmp_path: Path) -> None:
    assert configured_state_dir(written(tmp_path, "state_dir: x\nconcurency: 2\n"), {}) == tmp_path / "x"


@pytest.mark.parametrize(
    "text",
    [
        "state_dri: x\n",
        "state_dir: x\nstate_dir: y\n",
        "state_dir: [x]\n",
        "state_dir: ''\n",
        "state_dir:\n",
        'state_dir: "x\\ny"\n',
        "- state_dir: x\n",
        "state_dir: x\n---\nstate_dir: y\n",
        "state_dir: &x [\n",
        "",
    ],
)
def test_where_it_is_not_clear_the_whole_has_to_be_read(tmp_path: Path, text: str) -> None:
    with pytest.raises(Unclear):
        configured_state_dir(written(tmp_path, text), {})


def test_a_configuration_that_is_not_there_is_not_clear(tmp_path: Path) -> None:
    with pytest.raises(Unclear):
        configured_state_dir(tmp_path / "none.yaml", {})
