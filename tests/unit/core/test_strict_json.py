"""All that Python's json forgives is refused, with the place it stands at."""

from __future__ import annotations

import pytest

from labaudit.core.strict_json import parse_json, parse_object
from labaudit.errors import BadInput


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b'{"a":1,"a":2}', "twice"),
        (b'{"a":NaN}', "NaN"),
        (b"[Infinity]", "Infinity"),
        (b"[1e999]", "too large"),
        (b"[9007199254740993]", "2^53"),
        (b"[-9007199254740993]", "2^53"),
        (b"[" + b"9" * 5000 + b"]", "2^53"),
        (b'"\\ud800"', "surrogate"),
        (b'{"\\udfff":1}', "surrogate"),
        (b"\xef\xbb\xbf{}", "byte order mark"),
        (b'"\xff"', "UTF-8"),
        (b'{"a":', "no JSON"),
        (b"{} {}", "no JSON"),
        (b"", "no JSON"),
        (b"[" * 200 + b"]" * 200, "deeper"),
        (b'{"a":[' * 100_000, "deeper"),
    ],
)
def test_each_ambiguity_is_named(data: bytes, word: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_json(data, where="x.json")
    assert word in caught.value.what
    assert caught.value.where.startswith("x.json")


def test_ordinary_json_is_read() -> None:
    assert parse_json(b'{"a":[1,-2,3.5,"\\u00e9\\ud83d\\ude00",null,true]}') == {"a": [1, -2, 3.5, "é😀", None, True]}
    assert parse_json(b"9007199254740991") == 2**53 - 1
    large = parse_json(b"9007199254740992")
    assert isinstance(large, float)
    assert large == 2.0**53
    assert parse_json(b'"' + b"[" * 300 + b'"') == "[" * 300


def test_a_size_bound_is_kept() -> None:
    with pytest.raises(BadInput, match="more than"):
        parse_json(b'"aaaaaaaaaa"', max_bytes=5)


def test_an_object_is_asked_for_by_name() -> None:
    with pytest.raises(BadInput, match="holds an array"):
        parse_object(b"[]")
