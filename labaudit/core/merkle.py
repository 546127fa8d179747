"""Leaves to an RFC 6962 tree: roots, inclusion proofs and consistency proofs.

A leaf and a node are hashed with different prefixes, so neither can pass for the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256

HASH_SIZE = 32
EMPTY_ROOT = sha256(b"").digest()


def leaf_hash(data: bytes) -> bytes:
    """Hash of one leaf's bytes."""
    return sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Hash of an inner node."""
    return sha256(b"\x01" + left + right).digest()


class TreeHasher:
    """The root over leaves given one by one, in memory that grows with the logarithm of their number."""

    __slots__ = ("_stack", "size")

    def __init__(self) -> None:
        self.size = 0
        self._stack: list[bytes] = []

    def append(self, data: bytes) -> None:
        """Adds the next leaf."""
        self.append_hash(sha256(b"\x00" + data).digest())

    def append_hash(self, digest: bytes) -> None:
        """Adds the next leaf by its leaf hash."""
        size = self.size
        stack = self._stack
        while size & 1:
            digest = sha256(b"\x01" + stack.pop() + digest).digest()
            size >>= 1
        stack.append(digest)
        self.size += 1

    def root(self) -> bytes:
        """The root over the leaves so far."""
        if not self._stack:
            return EMPTY_ROOT
        stack = self._stack
        digest = stack[-1]
        for left in reversed(stack[:-1]):
            digest = node_hash(left, digest)
        return digest


def tree_root(leaves: Iterable[bytes]) -> bytes:
    """The root over these leaves."""
    hasher = TreeHasher()
    for leaf in leaves:
        hasher.append(leaf)
    return hasher.root()


def root_of_hashes(hashes: Iterable[bytes]) -> bytes:
    """The root over leaves known by their leaf hashes."""
    hasher = TreeHasher()
    for digest in hashes:
        hasher.append_hash(digest)
    return hasher.root()


class ProofTree:
    """All levels of a tree over fixed leaf hashes, so that many proofs cost logarithmic time each."""

    def __init__(self, hashes: Sequence[bytes]) -> None:
        self.size = len(hashes)
        # Level k holds the hashes of the complete subtrees of 2**k leaves, left to right.
        self._levels: list[list[bytes]] = [list(hashes)]
        while len(self._levels[-1]) > 1:
            below = self._levels[-1]
            self._levels.append([node_hash(below[i], below[i + 1]) for i in range(0, len(below) - 1, 2)])

    def root(self) -> bytes:
        """The root over all leaves."""
        return self._range(0, self.size) if self.size else EMPTY_ROOT

    def inclusion(self, index: int) -> list[bytes]:
        """The audit path of the leaf at `index`."""
        if not 0 <= index < self.size:
            raise IndexError(f"leaf {index} of a tree of {self.size}")
        proof: list[bytes] = []
        start, end = 0, self.size
        while end - start > 1:
            middle = start + _split(end - start)
            if index < middle:
                proof.append(self._range(middle, end))
                end = middle
            else:
                proof.append(self._range(start, middle))
                start = middle
        proof.reverse()
        return proof

    def _range(self, start: int, end: int) -> bytes:
        width = end - start
        if width & (width - 1) == 0 and start % width == 0:
            return self._levels[width.bit_length() - 1][start // width]
        middle = start + _split(width)
        return node_hash(self._range(start, middle), self._range(middle, end))


def inclusion_proof(hashes: Sequence[bytes], index: int) -> list[bytes]:
    """The audit path of one leaf; for many, build one ProofTree."""
    return ProofTree(hashes).inclusion(index)


def verify_inclusion(digest: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes) -> bool:
    """RFC 9162 2.1.3.2: does `proof` lead from this leaf hash to `root`?"""
    if not 0 <= index < size or not _are_hashes(digest, root, *proof):
        return False
    fn, sn = index, size - 1
    result = digest
    for sibling in proof:
        if sn == 0:
            return False
        if fn & 1 or fn == sn:
            result = node_hash(sibling, result)
            while not fn & 1 and fn:
                fn >>= 1
                sn >>= 1
        else:
            result = node_hash(result, sibling)
        fn >>= 1
        sn >>= 1
    return sn == 0 and result == root


def consistency_proof(hashes: Sequence[bytes], first: int) -> list[bytes]:
    """The proof that the tree over the first `first` leaves is a prefix of the tree over all."""
    if not 0 <= first <= len(hashes):
        raise IndexError(f"{first} of {len(hashes)} leaves")
    if first in (0, len(hashes)):
        return []
    return _subproof(hashes, first, complete=True)


def _subproof(hashes: Sequence[bytes], first: int, *, complete: bool) -> list[bytes]:
    size = len(hashes)
    if first == size:
        return [] if complete else [root_of_hashes(hashes)]
    split = _split(size)
    if first <= split:
        return [*_subproof(hashes[:split], first, complete=complete), root_of_hashes(hashes[split:])]
    return [*_subproof(hashes[split:], first - split, complete=False), root_of_hashes(hashes[:split])]


def verify_consistency(size1: int, size2: int, root1: bytes, root2: bytes, proof: Sequence[bytes]) -> bool:
    """RFC 9162 2.1.4.2: is the tree of `size1` leaves a prefix of the tree of `size2`?"""
    if size1 < 1 or size2 < size1:
        # Every tree extends the empty one, so a proof from it would say nothing: refused, as the RFC has 0 < m.
        return False
    if size1 == size2:
        return not proof and root1 == root2
    if not proof or not _are_hashes(root1, root2, *proof):
        return False
    path = list(proof)
    if size1 & (size1 - 1) == 0:
        path.insert(0, root1)
    fn, sn = size1 - 1, size2 - 1
    while fn & 1:
        fn >>= 1
        sn >>= 1
    old = new = path[0]
    for sibling in path[1:]:
        if sn == 0:
            return False
        if fn & 1 or fn == sn:
            old, new = node_hash(sibling, old), node_hash(sibling, new)
            while not fn & 1 and fn:
                fn >>= 1
                sn >>= 1
        else:
            new = node_hash(new, sibling)
        fn >>= 1
        sn >>= 1
    return sn == 0 and old == root1 and new == root2


def _are_hashes(*values: bytes) -> bool:
    return all(len(value) == HASH_SIZE for value in values)


def _split(size: int) -> int:
    """The largest power of two below `size`."""
    return 1 << (size - 1).bit_length() - 1
