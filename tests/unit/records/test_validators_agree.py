"""jsonschema, the slow and well-known validator, is the judge of the fast one."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labaudit.records.finding import Finding
from labaudit.records.schema_registry import (
    explain,
    fast_validator,
    load_schema,
    schema_names,
    slow_validator,
    validate,
)

DOCUMENTS = Path(__file__).parent / "documents"
VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1.0,
    1.5,
    "",
    "x",
    "2026-11-18T09:30:00Z\n",
    [],
    {},
    {"a": 1},
    2**53,
)


def damaged(document: Any, chance: random.Random) -> Any:
    """The document with one to three places changed at random."""
    result = json.loads(json.dumps(document))
    for _ in range(chance.randint(1, 3)):
        place = result
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            if not keys:
                break
            key = chance.choice(keys)
            if isinstance(place[key], dict | list) and place[key] and chance.random() < 0.7:
                place = place[key]
                continue
            what = chance.random()
            if what < 0.25:
                del place[key]
            elif what < 0.4 and isinstance(place, dict):
                place["bogus"] = 1
            elif what < 0.6 and isinstance(place[key], str):
                place[key] += chance.choice(["\n", "x", " "])
            else:
                place[key] = chance.choice(VALUES)
            break
    return result


@pytest.mark.parametrize("name", schema_names())
def test_fast_and_slow_give_the_same_answer_and_the_slow_one_explains_it(name: str) -> None:
    chance = random.Random(name)
    cases = [json.loads(path.read_text()) for path in sorted((DOCUMENTS / name).glob("*.json"))]
    answers = set()
    for _ in range(100):
        value = damaged(chance.choice(cases), chance)
        answer = fast_validator(name).is_valid(value)
        assert slow_validator(name).is_valid(value) == answer, value
        assert bool(validate(name, value)) != answer
        answers.add(answer)
    assert False in answers


@pytest.mark.parametrize("name", schema_names())
def test_every_schema_is_a_valid_schema_with_its_own_address(name: str) -> None:
    schema = load_schema(name)
    slow_validator(name).check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$id"] == f"https://agent-lab.local/schemas/{name}.json"


def test_every_object_of_every_schema_says_whether_it_is_open() -> None:
    silent = []
    for name in schema_names():
        places = [((), load_schema(name))]
        while places:
            path, part = places.pop()
            if isinstance(part, dict):
                closed = {"additionalProperties", "unevaluatedProperties"} & part.keys()
                under_all_of = "allOf" in path or path[-1:] == ("base_event",)
                if "properties" in part and "type" in part and not closed and not under_all_of:
                    silent.append((name, path))
                places.extend(((*path, key), child) for key, child in part.items())
            elif isinstance(part, list):
                places.extend((path, child) for child in part)
    assert silent == []


def test_every_fixed_text_pattern_is_bounded_against_a_final_newline() -> None:
    """Python's `$` also matches before a last newline, so a pattern ends in maxLength or in a look-ahead."""
    loose = []
    for name in schema_names():
        places: list[Any] = [load_schema(name)]
        while places:
            part = places.pop()
            if isinstance(part, dict):
                pattern = part.get("pattern")
                if isinstance(pattern, str) and pattern.endswith("$") and "maxLength" not in part:
                    loose.append((name, pattern))
                places.extend(part.values())
            elif isinstance(part, list):
                places.extend(part)
    assert loose == []


@settings(max_examples=60, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=8,
    )
)
def test_no_value_makes_an_explanation_fail(value: Any) -> None:
    for name in ("hook_events_v1", "grades_v1", "scenario_task_v1"):
        found = validate(name, value)
        assert found
        assert all(isinstance(item, Finding) and item.path.startswith("$") and item.message for item in found)


def event(case: str, **changes: Any) -> Any:
    return {**json.loads((DOCUMENTS / "hook_events_v1" / f"{case}.json").read_text()), **changes}


def test_a_broken_event_is_explained_as_the_kind_it_says_it_is() -> None:
    found = explain("hook_events_v1", event("control_ack", action_observed="pause", bogus=1, seq=-1))
    assert [(item.path, item.rule) for item in found] == [
        ("$", "unevaluatedProperties"),
        ("$.action_observed", "enum"),
        ("$.seq", "minimum"),
    ]
    assert "'bogus'" in found[0].message
    assert "control_version" not in found[0].message


def test_an_unknown_event_type_is_named_with_those_there_are() -> None:
    (found,) = explain("hook_events_v1", event("control_ack", event_type="control_nack"))
    assert "'control_nack' is unknown; known: agent_step_end" in found.message


def test_an_event_without_a_type_is_told_so() -> None:
    value = event("step_start")
    del value["event_type"]
    (found,) = explain("hook_events_v1", value)
    assert found.message == "'event_type' is a required property"


def test_a_wrong_constant_that_all_kinds_share_does_not_hide_the_kind() -> None:
    (found,) = explain("hook_events_v1", event("step_start", hooks_schema_version="hook_events_v2"))
    assert found.path == "$.hooks_schema_version"


def test_a_long_value_is_shortened_in_its_sentence() -> None:
    (found,) = explain("hook_events_v1", event("step_start", ts="x" * 100_000))
    assert len(found.message) < 200
