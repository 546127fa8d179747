"""Each correction of docs/adr/0002-schema-corrections.md, by its row: what it lets in, and what stays out."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from labaudit.errors import BadInput
from labaudit.records.by_schema import record_loader
from labaudit.records.schema_registry import fast_validator, slow_validator, validate

DOCUMENTS = Path(__file__).parent / "documents"
STREAM = (
    "header",
    "step_start",
    "model_call",
    "tool_call",
    "step_end_with_budgets",
    "control_ack",
    "error",
)


def document(schema: str, case: str) -> Any:
    return json.loads((DOCUMENTS / schema / f"{case}.json").read_text())


def edited(schema: str, case: str, *path: str, value: Any) -> Any:
    """A document with one value put in or, for `...`, taken out."""
    result = document(schema, case)
    place = result
    for key in path[:-1]:
        place = place[key]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return result


def assert_accepted(schema: str, value: Any) -> None:
    assert validate(schema, value) == []
    assert slow_validator(schema).is_valid(value)
    record_loader(schema)(value)


def assert_refused(schema: str, value: Any) -> None:
    assert validate(schema, value)
    assert not slow_validator(schema).is_valid(value)
    with pytest.raises(BadInput):
        record_loader(schema)(value)


@pytest.mark.parametrize("case", STREAM)
def test_row_1_each_event_of_a_full_stream_validates_and_one_bogus_key_does_not(case: str) -> None:
    event = document("hook_events_v1", case)
    assert_accepted("hook_events_v1", event)
    assert_refused("hook_events_v1", {**event, "bogus": 1})


@pytest.mark.parametrize("case", STREAM)
def test_row_1_a_key_of_one_event_is_bogus_on_another(case: str) -> None:
    event = document("hook_events_v1", case)
    foreign = {"budgets": {}} if case != "step_end_with_budgets" else {"control_version": "sha256:" + "0" * 64}
    assert_refused("hook_events_v1", {**event, **foreign})


def test_row_1_free_keys_stand_in_ext() -> None:
    assert_accepted("hook_events_v1", {**document("hook_events_v1", "step_start"), "ext": {"bogus": 1}})


@pytest.mark.parametrize("value", [3, 0, -2, 3.0, 0.5, "x", True, None])
def test_row_2_metrics_are_numbers_whole_ones_too_text_booleans_or_null(value: Any) -> None:
    assert_accepted("trial_output_v1", edited("trial_output_v1", "full", "metrics", value={"steps": value}))


@pytest.mark.parametrize("value", [[], {}, [1]])
def test_row_2_metrics_are_no_containers(value: Any) -> None:
    assert_refused("trial_output_v1", edited("trial_output_v1", "full", "metrics", value={"steps": value}))


@pytest.mark.parametrize("key", ["hooks_schema_version", "step_semantics", "integration_level"])
def test_row_3_a_header_says_version_semantics_and_level(key: str) -> None:
    assert_refused("hook_events_v1", edited("hook_events_v1", "header", key, value=...))


def test_row_3_a_header_may_name_its_manifest() -> None:
    assert_accepted("hook_events_v1", edited("hook_events_v1", "header", "manifest_digest", value=...))
    assert_refused("hook_events_v1", edited("hook_events_v1", "header", "manifest_digest", value="sha256:0"))


@pytest.mark.parametrize("risk", ["none", "residual", "high", "unknown"])
def test_row_4_an_inventory_may_state_the_bypass_risk(risk: str) -> None:
    assert_accepted("state_inventory_v1", edited("state_inventory_v1", "full", "network", "bypass_risk", value=risk))
    assert_accepted("state_inventory_v1", edited("state_inventory_v1", "full", "network", "bypass_risk", value=...))
    assert_refused("state_inventory_v1", edited("state_inventory_v1", "full", "network", "bypass_risk", value="low"))


def test_row_5_an_inventory_may_carry_ids_and_then_all_of_them() -> None:
    assert_accepted("state_inventory_v1", edited("state_inventory_v1", "full", "ids", value=...))
    assert_refused("state_inventory_v1", edited("state_inventory_v1", "full", "ids", "repl_idx", value=...))


@pytest.mark.parametrize("fingerprint", ["python 3.11", {"python": "3.11", "libc": "2.36"}])
def test_row_6_a_harness_identity_may_have_lockfile_and_fingerprint(fingerprint: Any) -> None:
    whole = edited("state_inventory_v1", "full", "harness_identity", "runtime_fingerprint", value=fingerprint)
    assert_accepted("state_inventory_v1", whole)
    assert_refused("state_inventory_v1", edited("state_inventory_v1", "full", "harness_identity", "bogus", value=1))


@pytest.mark.parametrize("enforcement", ["none", "bubblewrap_netns", "unix_socket_proxy", "docker_none", "unknown"])
def test_row_7_every_means_of_enforcement_has_a_name(enforcement: str) -> None:
    changed = edited("state_inventory_v1", "full", "network", "enforcement_effective", value=enforcement)
    assert_accepted("state_inventory_v1", changed)


@pytest.mark.parametrize(
    ("schema", "block"), [("harness_manifest_v1", "harness"), ("state_inventory_v1", "harness_identity")]
)
def test_row_8_a_source_digest_may_say_how_it_came_about(schema: str, block: str) -> None:
    assert_accepted(schema, edited(schema, "full", block, "source_provenance", value={"kind": "directory"}))
    assert_refused(schema, edited(schema, "full", block, "source_provenance", value={"kind": "svn"}))
    assert_refused(schema, edited(schema, "full", block, "source_provenance", value={"dirty": True}))


@pytest.mark.parametrize("answer", [4, 4.5, True, False, None, "", "x", [], {}])
def test_row_9_an_answer_is_any_json(answer: Any) -> None:
    assert_accepted("trial_output_v1", edited("trial_output_v1", "full", "answer", value=answer))


@pytest.mark.parametrize(
    ("schema", "path"),
    [("harness_manifest_v1", ("control_plane",)), ("trial_input_v1", ("runtime", "control_plane"))],
)
def test_row_10_only_a_file_control_plane_needs_a_path(schema: str, path: tuple[str, ...]) -> None:
    assert_accepted(schema, edited(schema, "full", *path, value={"mode": "sdk"}))
    assert_accepted(schema, edited(schema, "full", *path, value={"mode": "sdk", "path": "/state/x"}))
    assert_refused(schema, edited(schema, "full", *path, value={"mode": "file"}))


def _texts(value: Any, path: tuple[Any, ...] = ()) -> Any:
    if isinstance(value, dict | list):
        for key, child in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _texts(child, (*path, key))
    elif isinstance(value, str) and value.startswith(("sha256:", "artifact://")):
        yield path


def _is_free(path: tuple[Any, ...]) -> bool:
    return any(key in ("ext", "task", "bindings") for key in path)


def test_row_11_no_digest_or_reference_of_any_document_may_end_in_a_newline() -> None:
    seen = 0
    for path in sorted(DOCUMENTS.glob("*/*.json")):
        schema, whole = path.parent.name, json.loads(path.read_text())
        for place in _texts(whole):
            if _is_free(place):
                continue
            changed = copy.deepcopy(whole)
            holder = changed
            for key in place[:-1]:
                holder = holder[key]
            holder[place[-1]] += "\n"
            assert not fast_validator(schema).is_valid(changed), (path.name, place)
            assert not slow_validator(schema).is_valid(changed), (path.name, place)
            seen += 1
    assert seen > 50


@pytest.mark.parametrize(
    "text",
    [
        "yesterday",
        "2026-11-18",
        "2026-11-18T09:30:00",
        "2026-02-30T09:30:00Z",
        "2026-11-18T25:00:00Z",
        "2026-11-18T09:30:00Z\n",
        "",
    ],
)
def test_row_12_a_time_that_is_none_is_refused(text: str) -> None:
    assert_refused("hook_events_v1", edited("hook_events_v1", "step_start", "ts", value=text))
    assert_refused("harness_manifest_v1", edited("harness_manifest_v1", "full", "created_at", value=text))


@pytest.mark.parametrize("text", ["2026-11-18T09:30:00Z", "2026-11-18T09:30:00.5+05:30", "2026-11-18t09:30:00z"])
def test_row_12_a_time_with_an_offset_is_accepted(text: str) -> None:
    assert_accepted("hook_events_v1", edited("hook_events_v1", "step_start", "ts", value=text))
