"""RFC 6962 trees against published vectors and against themselves."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

import pytest

from labaudit.core import merkle

SHARED = Path(os.environ.get("LABAUDIT_VECTORS", Path(__file__).parents[4] / "shared" / "vectors"))
VECTORS = SHARED / "merkle" / "testdata"
has_vectors = pytest.mark.skipif(not VECTORS.is_dir(), reason="no published merkle vectors beside this checkout")


def _hashes(count: int) -> list[bytes]:
    return [merkle.leaf_hash(str(index).encode()) for index in range(count)]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 8, 9, 31, 64, 65, 100])
def test_every_leaf_of_every_tree_has_a_proof_that_leads_to_the_root(size: int) -> None:
    hashes = _hashes(size)
    tree = merkle.ProofTree(hashes)
    root = merkle.root_of_hashes(hashes)
    assert tree.root() == root
    for index in range(size):
        proof = tree.inclusion(index)
        assert merkle.verify_inclusion(hashes[index], index, size, proof, root)
        assert not merkle.verify_inclusion(hashes[index], (index + 1) % size if size > 1 else 1, size, proof, root)
        assert not merkle.verify_inclusion(hashes[index], index, size, [*proof, root], root)


@pytest.mark.parametrize("size", [1, 2, 3, 6, 8, 13, 33])
def test_every_prefix_is_consistent_and_no_other_tree_is(size: int) -> None:
    hashes = _hashes(size)
    root = merkle.root_of_hashes(hashes)
    for first in range(1, size + 1):
        old = merkle.root_of_hashes(hashes[:first])
        proof = merkle.consistency_proof(hashes, first)
        assert merkle.verify_consistency(first, size, old, root, proof)
        assert not merkle.verify_consistency(first, size, merkle.leaf_hash(b"other"), root, proof)


def test_a_leaf_that_looks_like_a_node_has_another_hash() -> None:
    left, right = _hashes(2)
    assert merkle.leaf_hash(left + right) != merkle.node_hash(left, right)
    assert merkle.tree_root([]) == merkle.EMPTY_ROOT


def _decode(text: str | None) -> bytes:
    return base64.b64decode(text or "")


@has_vectors
def test_the_published_inclusion_vectors_agree() -> None:
    cases = sorted((VECTORS / "inclusion").rglob("*.json"))
    assert len(cases) > 50
    for case in cases:
        data = json.loads(case.read_text())
        accepted = merkle.verify_inclusion(
            _decode(data["leafHash"]),
            data["leafIdx"],
            data["treeSize"],
            [_decode(item) for item in data["proof"] or []],
            _decode(data["root"]),
        )
        assert accepted is not data["wantErr"], case


@has_vectors
def test_the_published_consistency_vectors_agree() -> None:
    cases = sorted((VECTORS / "consistency").rglob("*.json"))
    assert len(cases) > 50
    for case in cases:
        data = json.loads(case.read_text())
        accepted = merkle.verify_consistency(
            data["size1"],
            data["size2"],
            _decode(data["root1"]),
            _decode(data["root2"]),
            [_decode(item) for item in data["proof"] or []],
        )
        assert accepted is not data["wantErr"], case
