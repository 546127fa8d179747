"""Canonical JSON: one value, one byte string; everything else refused."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

from labaudit.core.canonical import canonical_bytes, is_canonical
from labaudit.core.strict_json import parse_json
from labaudit.errors import BadInput

SHARED = Path(os.environ.get("LABAUDIT_VECTORS", Path(__file__).parents[4] / "shared" / "vectors"))
VECTORS = SHARED / "rfc8785" / "testdata"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"b": 1, "a": [True, None]}, b'{"a":[true,null],"b":1}'),
        ({"x": 1.0, "y": 1e21, "z": 1e-7}, b'{"x":1,"y":1e+21,"z":1e-7}'),
        (
            {"\u20ac": 1, "\r": 2, "\ufb33": 3, "\U0001f600": 4},
            '{"\\r":2,"\u20ac":1,"\U0001f600":4,"\ufb33":3}'.encode(),
        ),
        ('\u007f\u0000\u001f/\\"', b'"\x7f\\u0000\\u001f/\\\\\\""'),
        (2**53 - 1, b"9007199254740991"),
    ],
)
def test_values_have_the_bytes_that_rfc_8785_gives_them(value: object, expected: bytes) -> None:
    assert canonical_bytes(value) == expected


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        2**53,
        -(2**53),
        "\ud800",
        {1: 2},
        {"a": object()},
        {"a": {"b": math.nan}},
        b"x",
        {"\udc00": 1},
    ],
)
def test_values_without_canonical_form_are_refused(value: object) -> None:
    with pytest.raises(BadInput):
        canonical_bytes(value)


@pytest.mark.parametrize(
    "data", [b'{"a":1, "b":2}', b'{"b":1,"a":2}', b'{"a":1,"a":1}', b"1.0", b"no", b'{"a":1}\n', b"9007199254740993"]
)
def test_bytes_in_another_form_are_not_canonical(data: bytes) -> None:
    assert not is_canonical(data)


def test_deep_nesting_is_refused_and_not_a_crash() -> None:
    value: object = 1
    for _ in range(100_000):
        value = [value]
    with pytest.raises(BadInput):
        canonical_bytes(value)


@pytest.mark.skipif(not VECTORS.is_dir(), reason="the published RFC 8785 vectors are not beside this checkout")
@pytest.mark.parametrize("name", ["arrays", "french", "structures", "unicode", "values", "weird"])
def test_the_published_vectors_agree(name: str) -> None:
    value = parse_json((VECTORS / "input" / f"{name}.json").read_bytes())
    wanted = (VECTORS / "output" / f"{name}.json").read_bytes()
    assert canonical_bytes(value) == wanted
    hexadecimal = "".join((VECTORS / "outhex" / f"{name}.txt").read_text().split())
    assert canonical_bytes(value).hex() == hexadecimal.lower()
