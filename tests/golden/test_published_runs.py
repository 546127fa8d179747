"""Runs that earlier versions published: every later version must go on verifying them, and go on finding changes.

A folder per version: `run.zip` (a bundle), `trial.tlog-proof`, `checkpoint`, and the public key that signed them. The
private keys are gone; what stands here is never made again. `v0.1-worker` was executed by a worker and carries its
receipts; it has no bill of materials, so it is signed and not attested.
"""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest

from labaudit.attest.keys import PublicKey
from labaudit.store.run_folder import RunFolder
from labaudit.verify.request import Anchors, Request
from labaudit.verify.targets import verify_target
from labaudit.verify.verdict import Report
from tests.unit.analysis.made_up import broken_files

VERSIONS = sorted(path for path in Path(__file__).parent.iterdir() if path.name.startswith("v"))


def check(version: Path, target: Path, **options: object) -> Report:
    anchors = Anchors(keys=(PublicKey.load(version / "labaudit.pub"),))
    return verify_target(target, Request(anchors=anchors, **options))  # type: ignore[arg-type]


@pytest.fixture(params=VERSIONS, ids=lambda path: path.name)
def version(request: pytest.FixtureRequest) -> Path:
    return Path(request.param)


def test_there_is_a_published_run() -> None:
    assert VERSIONS


def test_the_bundle_of_an_earlier_version_verifies(version: Path) -> None:
    report = check(version, version / "run.zip", seen=(version / "checkpoint").read_bytes())
    assert report.findings == []
    assert (report.verdict, report.provenance) == ("verified", "signed" if "worker" in version.name else "attested")


def test_the_unpacked_run_of_an_earlier_version_verifies(version: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(version / "run.zip") as archive:
        archive.extractall(tmp_path)
    assert check(version, next(tmp_path.iterdir())).findings == []


def test_the_analysis_of_an_earlier_version_keeps_to_its_schemas(version: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(version / "run.zip") as archive:
        archive.extractall(tmp_path)
    assert broken_files(RunFolder(next(tmp_path.iterdir()))) == []


def test_the_single_trial_proof_of_an_earlier_version_verifies(version: Path) -> None:
    assert check(version, version / "trial.tlog-proof").verdict == "verified"


def test_a_change_in_a_run_of_an_earlier_version_is_found(version: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(version / "run.zip") as archive:
        archive.extractall(tmp_path)
    run = next(tmp_path.iterdir())
    grades = run / "grades.json"
    raised = re.sub(rb'"value":"(bounded|leaky)"', b'"value":"sealed"', grades.read_bytes(), count=1)
    assert raised != grades.read_bytes()
    grades.write_bytes(raised)
    report = check(version, run)
    assert report.exit_code == 1
    assert "grades.json" in {finding.path for finding in report.findings}


def test_the_receipts_of_an_earlier_version_are_read_and_a_changed_one_is_named(tmp_path: Path) -> None:
    version = Path(__file__).parent / "v0.1-worker"
    with zipfile.ZipFile(version / "run.zip") as archive:
        archive.extractall(tmp_path)
    run = next(tmp_path.iterdir())
    receipt = next(run.glob("trials/*/receipt.json"))
    receipt.write_bytes(receipt.read_bytes().replace(b'"worker_id":"w1"', b'"worker_id":"w2"'))
    found = {(finding.code, finding.path) for finding in check(version, run).findings}
    name = receipt.relative_to(run).as_posix()
    assert {("digest_mismatch", name), ("receipt_signature", name)} <= found
