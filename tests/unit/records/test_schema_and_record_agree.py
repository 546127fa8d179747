"""The same documents go to the schema, by two validators, and to the record; all three must give one answer.

`documents/<schema>/<case>.json` are valid. Each is then changed in one place in every way that a wrong writer might
change it: a key dropped, a key added, a value of another type, a boundary crossed.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from labaudit.errors import BadInput
from labaudit.records.by_schema import record_loader, record_schemas
from labaudit.records.schema_registry import fast_validator, schema_names, slow_validator, validate

DOCUMENTS = Path(__file__).parent / "documents"
CASES = sorted(path.relative_to(DOCUMENTS).as_posix() for path in DOCUMENTS.glob("*/*.json"))
OTHER_VALUES: tuple[Any, ...] = (None, True, False, 0, 1, -1, 2.0, 1.5, "", "x", "a\n", [], ["x"], {}, {"bogus": 1})


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place below a document's root."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield (*path, key)
        yield from places(child, (*path, key))


def holder(document: Any, path: tuple[Any, ...]) -> Any:
    for key in path[:-1]:
        document = document[key]
    return document


def changed(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    result = copy.deepcopy(document)
    holder(result, path)[path[-1]] = value
    return result


def variations(document: Any) -> Iterator[Any]:
    """The document with one change at one place."""
    yield {**document, "bogus": 1}
    for path in places(document):
        old = holder(document, path)[path[-1]]
        without = copy.deepcopy(document)
        del holder(without, path)[path[-1]]
        yield without
        if isinstance(old, dict):
            yield changed(document, (*path, "bogus"), 1)
        if isinstance(old, str):
            for text in (old + "\n", "\n" + old, old + "x", old.upper(), old[:-1]):
                yield changed(document, path, text)
        if isinstance(old, int | float) and not isinstance(old, bool):
            for number in (float(old), -old - 1, old + 0.5, old * 100000):
                yield changed(document, path, number)
        for value in OTHER_VALUES:
            yield changed(document, path, value)


def record_accepts(schema: str, document: Any) -> bool:
    try:
        record_loader(schema)(document)
    except BadInput:
        return False
    return True


def test_every_schema_has_a_record_and_every_record_a_document() -> None:
    assert record_schemas() == schema_names()
    assert sorted(path.name for path in DOCUMENTS.iterdir()) == schema_names()


@pytest.mark.parametrize("case", CASES)
def test_a_valid_document_is_valid_everywhere_and_survives_the_record(case: str) -> None:
    schema = case.split("/")[0]
    document = json.loads((DOCUMENTS / case).read_text())
    assert validate(schema, document) == []
    assert slow_validator(schema).is_valid(document)
    record = record_loader(schema)(document, where=case)
    assert record.to_json() == document
    assert type(record).from_bytes(record.to_bytes()) == record


@pytest.mark.parametrize("case", CASES)
def test_one_change_gives_one_answer(case: str) -> None:
    schema = case.split("/")[0]
    document = json.loads((DOCUMENTS / case).read_text())
    fast = fast_validator(schema)
    disagreements = []
    refused = 0
    for variation in variations(document):
        answer = fast.is_valid(variation)
        refused += not answer
        if record_accepts(schema, variation) != answer:
            disagreements.append((answer, variation))
    assert not disagreements, disagreements[:3]
    assert refused > 10
