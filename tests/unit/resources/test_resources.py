"""The three resource folders are found, in a checkout and inside a package."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from labaudit import resources
from labaudit.errors import BadInput, EnvironmentLacks

TOP = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def _forget_found_folders() -> None:
    resources.resource_dir.cache_clear()


def test_in_a_checkout_the_folders_stand_at_its_top() -> None:
    assert resources.resource_dir("schemas") == TOP / "schemas"
    assert resources.template_dir() == TOP / "site_templates"


def test_inside_a_wheel_the_folders_stand_in_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "made_v1.jsonschema").write_text("{}")
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "strict.yaml").write_text("{}")
    monkeypatch.setattr(resources, "_PACKAGE", tmp_path)
    assert resources.schema_names() == ["made_v1"]
    assert resources.read_schema("made_v1") == b"{}"
    assert resources.policy_path("strict") == tmp_path / "policies" / "strict.yaml"
    assert resources.template_dir() == TOP / "site_templates"
    resources.resource_dir.cache_clear()


@pytest.mark.parametrize("name", ["trial_output_v1", "trial_output_v1.json", "trial_output_v1.jsonschema"])
def test_a_schema_is_found_by_any_form_of_its_name(name: str) -> None:
    assert resources.schema_path(name) == TOP / "schemas" / "trial_output_v1.jsonschema"
    assert json.loads(resources.read_schema(name))["title"] == "Trial Output v1"


@pytest.mark.parametrize(
    "name", ["", "nothing", "../pyproject", "/etc/passwd", "trial_output_v1\n", "trial_output_v1\0"]
)
def test_a_name_that_is_no_schema_is_bad_input(name: str) -> None:
    with pytest.raises(BadInput, match="there is no schema"):
        resources.read_schema(name)


@pytest.mark.parametrize("name", ["nothing", "../pyproject.toml", "a/b"])
def test_a_name_that_is_no_policy_is_bad_input(name: str) -> None:
    with pytest.raises(BadInput, match="there is no bundled policy"):
        resources.policy_path(name)


def test_a_folder_that_is_nowhere_is_a_broken_installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "_PACKAGE", tmp_path)
    monkeypatch.setattr(resources, "_CHECKOUT", tmp_path)
    with pytest.raises(EnvironmentLacks, match="schemas/ is missing"):
        resources.schema_names()


def test_a_misspelt_policy_is_answered_with_policies_only() -> None:
    with pytest.raises(BadInput, match=r"known: default, publication, release$"):
        resources.policy_path("relase")
