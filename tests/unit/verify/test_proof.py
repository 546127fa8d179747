"""One file and one key are enough to check that a trial is part of a run; nothing else in the file is believed."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from labaudit.attest.checkpoint import sign_checkpoint
from labaudit.attest.keys import PrivateKey
from labaudit.attest.log_key import LogKey
from labaudit.attest.proofs import ProofWriter, parse_proof
from labaudit.core.canonical import canonical_bytes
from labaudit.core.merkle import leaf_hash, node_hash
from labaudit.verify.request import Anchors
from labaudit.verify.verdict import Report
from tests.make_run import MadeRun
from tests.unit.verify.conftest import codes


@pytest.fixture
def proof(made: MadeRun, completed: list[str]) -> Path:
    return made.run.proof(completed[0])


def written(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "one.tlog-proof"
    path.write_bytes(data)
    return path


def test_a_proof_verifies_alone_with_one_key(proof: Path, tmp_path: Path, check: Callable[..., Report]) -> None:
    report = check(written(tmp_path, proof.read_bytes()))
    assert (report.verdict, report.kind, report.provenance) == ("verified", "proof", "signed")
    assert any("verify the run" in line for line in report.not_established)


def test_every_trial_of_a_run_has_a_proof_that_verifies(made: MadeRun, check: Callable[..., Report]) -> None:
    proofs = sorted((made.run.attestations / "proofs").iterdir())
    assert len(proofs) == 6
    assert {check(path).verdict for path in proofs} == {"verified"}


def test_without_a_key_it_is_policy_unmet(proof: Path, check: Callable[..., Report]) -> None:
    report = check(proof, anchors=Anchors())
    assert (report.exit_code, codes(report)) == (3, {"no_trust_anchor"})
    assert check(proof, anchors=Anchors(), integrity_only=True).exit_code == 0


def test_another_key_is_not_the_signer(proof: Path, check: Callable[..., Report]) -> None:
    report = check(proof, anchors=Anchors(keys=(PrivateKey.generate().public,)))
    assert (report.exit_code, codes(report)) == (3, {"signer_not_trusted"})


def test_any_changed_byte_is_found(proof: Path, tmp_path: Path, check: Callable[..., Report]) -> None:
    data = proof.read_bytes()
    for place in range(0, len(data), max(1, len(data) // 60)):
        changed = bytearray(data)
        changed[place] ^= 0x01
        assert check(written(tmp_path, bytes(changed))).exit_code in (1, 2, 3), place


def test_a_changed_outcome_is_found(proof: Path, tmp_path: Path, check: Callable[..., Report]) -> None:
    parsed = parse_proof(proof.read_bytes(), where="")
    record = parsed.record.replace(b'"outcome":"success"', b'"outcome":"failure"')
    data = ProofWriter(parsed.run_bundle, parsed.checkpoint.render()).render(record, parsed.index, parsed.path)
    report = check(written(tmp_path, data))
    assert (report.exit_code, codes(report)) == (1, {"proof_mismatch"})


def test_the_proof_of_another_place_is_found(
    made: MadeRun, completed: list[str], tmp_path: Path, check: Callable[..., Report]
) -> None:
    one, two = (parse_proof(made.run.proof(name).read_bytes(), where="") for name in completed[:2])
    data = ProofWriter(one.run_bundle, one.checkpoint.render()).render(one.record, two.index, two.path)
    assert "proof_mismatch" in codes(check(written(tmp_path, data)))


def test_an_inner_node_is_no_leaf(proof: Path, tmp_path: Path, check: Callable[..., Report]) -> None:
    """The bytes of two hashes, given as a record one level up, would hash to the same root without prefixes."""
    parsed = parse_proof(proof.read_bytes(), where="")
    left, right = leaf_hash(parsed.record), parsed.path[0]
    pair = left + right if parsed.index % 2 == 0 else right + left
    assert leaf_hash(pair) != node_hash(pair[:32], pair[32:])
    text = proof.read_text("utf-8").split("\n")
    extra = json.loads(base64.b64decode(text[1].removeprefix("extra ")))
    extra["trial_record"] = {"pair": pair.hex()}
    text[1] = "extra " + base64.b64encode(canonical_bytes(extra)).decode()
    text[2] = f"index {parsed.index // 2}"
    del text[3]
    report = check(written(tmp_path, "\n".join(text).encode()))
    assert report.exit_code == 1
    assert "proof_mismatch" in codes(report)


def test_a_checkpoint_of_another_log_key_is_found(
    made: MadeRun, proof: Path, tmp_path: Path, check: Callable[..., Report]
) -> None:
    parsed = parse_proof(proof.read_bytes(), where="")
    head = sign_checkpoint(parsed.checkpoint.origin, parsed.checkpoint.size, parsed.checkpoint.root, LogKey.generate())
    data = ProofWriter(parsed.run_bundle, head.render()).render(parsed.record, parsed.index, parsed.path)
    assert codes(check(written(tmp_path, data))) == {"checkpoint_signature"}


@pytest.mark.parametrize(
    "data",
    [
        b"c2sp.org/tlog-proof@v1\n",
        b"c2sp.org/tlog-proof@v1\nextra e30=\nindex 0\n\n",
        b"c2sp.org/tlog-proof@v1\nextra !!!\nindex 0\n\nx\n0\n\n\n\n",
        b"c2sp.org/tlog-proof@v1\nextra e30=\nindex 99999999999999999999\n\n",
        b"c2sp.org/tlog-proof@v1\n\xff\xfe",
    ],
)
def test_what_is_no_proof_is_malformed(tmp_path: Path, check: Callable[..., Report], data: bytes) -> None:
    report = check(written(tmp_path, data))
    assert (report.exit_code, codes(report)) == (2, {"proof_malformed"})
