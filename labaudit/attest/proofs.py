"""One trial's place in the run tree as a C2SP tlog-proof, and back.

The `extra` line carries the trial record and the run attestation: with them, the file and one trusted key are all that
a reader needs. The protocol says `extra` is not authenticated, and nothing here trusts it: the record is authenticated
by the inclusion proof, the run attestation by its own signature.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from labaudit.attest import base64_strict
from labaudit.attest.checkpoint import Checkpoint, parse_checkpoint
from labaudit.core.canonical import canonical_bytes
from labaudit.core.merkle import leaf_hash, verify_inclusion
from labaudit.core.strict_json import parse_object
from labaudit.errors import BadInput

HEADER = "c2sp.org/tlog-proof@v1"
MAX_PROOF = 1024 * 1024
_INDEX = re.compile(r"index (0|[1-9][0-9]{0,15})")


@dataclass(frozen=True)
class TrialProof:
    """A parsed proof."""

    record: bytes
    run_bundle: bytes
    index: int
    path: tuple[bytes, ...]
    checkpoint: Checkpoint

    @property
    def holds(self) -> bool:
        """True when the path leads from the record to the checkpoint's root."""
        head = self.checkpoint
        return verify_inclusion(leaf_hash(self.record), self.index, head.size, self.path, head.root)


class ProofWriter:
    """Renders many proofs of one run; what they share is encoded once."""

    def __init__(self, run_bundle: bytes, checkpoint: bytes) -> None:
        # Both parts are canonical JSON and `run` sorts before `trial_record`, so splicing bytes stays canonical.
        self._start = b'{"run":' + run_bundle + b',"trial_record":'
        self._checkpoint = checkpoint

    def render(self, record: bytes, index: int, path: Sequence[bytes]) -> bytes:
        """The exact bytes of one proof."""
        extra = self._start + record + b"}"
        lines = [HEADER, f"extra {base64_strict.encode(extra)}", f"index {index}"]
        lines += [base64_strict.encode(node) for node in path]
        return "\n".join([*lines, "", ""]).encode("ascii") + self._checkpoint


def parse_proof(data: bytes, *, where: str) -> TrialProof:
    """The proof in `data`, or BadInput."""
    if len(data) > MAX_PROOF:
        raise BadInput(f"is larger than {MAX_PROOF} bytes", where=where)
    head, _, note = data.partition(b"\n\n")
    try:
        lines = head.decode("ascii").split("\n")
    except UnicodeDecodeError as error:
        raise BadInput("is no tlog-proof", where=where) from error
    if len(lines) < 3 or lines[0] != HEADER or not lines[1].startswith("extra "):
        raise BadInput(f"does not start with {HEADER} and an extra line", where=where)
    match = _INDEX.fullmatch(lines[2])
    if match is None:
        raise BadInput("has no index line", where=where)
    path = tuple(base64_strict.decode(line, where=f"{where} path") for line in lines[3:])
    if len(path) > 64 or any(len(node) != 32 for node in path):
        raise BadInput("has an inclusion path that no tree can have", where=where)
    record, bundle = _extra(lines[1].removeprefix("extra "), where)
    return TrialProof(record, bundle, int(match.group(1)), path, parse_checkpoint(note, where=where))


def _extra(text: str, where: str) -> tuple[bytes, bytes]:
    value = parse_object(base64_strict.decode(text, where=f"{where} extra"), where=f"{where} extra")
    if set(value) != {"run", "trial_record"}:
        raise BadInput("its extra data holds no trial record and run attestation", where=where)
    return canonical_bytes(value["trial_record"]), canonical_bytes(value["run"])
