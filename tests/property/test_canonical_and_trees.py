"""Laws of section 5, each against a second implementation.

"One function: orjson with sorted keys where that gives the same bytes, rfc8785 otherwise; equal bytes are
property-tested." And: trees are RFC 6962 trees, as pymerkle builds them.
"""

from __future__ import annotations

import pymerkle
import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from labaudit.core import merkle
from labaudit.core.canonical import canonical_bytes, is_canonical
from labaudit.core.strict_json import parse_json

SAFE = 2**53 - 1
text = st.text(st.characters(codec="utf-8"))
values = st.recursive(
    st.none() | st.booleans() | st.integers(-SAFE, SAFE) | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(text, inner, max_size=5),
    max_leaves=20,
)


def _check_canonical(value: object) -> None:
    data = canonical_bytes(value)
    assert data == rfc8785.dumps(value)  # type: ignore[arg-type]
    assert is_canonical(data)
    assert canonical_bytes(parse_json(data)) == data


@given(values)
def test_canonical_json_agrees_with_rfc8785(value: object) -> None:
    _check_canonical(value)


@pytest.mark.acceptance
@settings(max_examples=10_000)
@given(values)
def test_canonical_json_agrees_with_rfc8785_ten_thousand_times(value: object) -> None:
    _check_canonical(value)


def _check_tree(leaves: list[bytes]) -> None:
    peer = pymerkle.InmemoryTree(algorithm="sha256")
    for leaf in leaves:
        peer.append_entry(leaf)
    assert merkle.tree_root(leaves) == peer.get_root()
    hashes = [merkle.leaf_hash(leaf) for leaf in leaves]
    half = max(1, len(leaves) // 2)
    assert merkle.verify_consistency(
        half, len(leaves), peer.get_root(half), peer.get_root(), merkle.consistency_proof(hashes, half)
    )


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=70))
def test_trees_agree_with_pymerkle(leaves: list[bytes]) -> None:
    _check_tree(leaves)


@pytest.mark.acceptance
@settings(max_examples=1000)
@given(st.lists(st.binary(max_size=40), min_size=1, max_size=200))
def test_trees_agree_with_pymerkle_a_thousand_times(leaves: list[bytes]) -> None:
    _check_tree(leaves)
