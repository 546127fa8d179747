"""Verify checks what workers signed for: a changed receipt fails, even when the run's own key seals and signs again."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from labaudit.attest.keys import PrivateKey
from labaudit.attest.seal import sign_resolve_link
from labaudit.attest.trust_store import LabKeys, ensure_keys
from labaudit.core.canonical import canonical_bytes
from labaudit.core.clock import SystemClock
from labaudit.evidence.observe import observe_trial
from labaudit.evidence.trial_facts import TrialFacts
from labaudit.evidence.trial_record import file_entries
from labaudit.grading.grades import grade_trial
from labaudit.pipeline.run import finish_run
from labaudit.records.trial_record import TrialRecord
from labaudit.runner.remote.description import EXECUTOR_FILE
from labaudit.runner.remote.receipt import worker_key
from labaudit.runner.run_start import read_resolved, read_schedule
from labaudit.store import atomic
from labaudit.store.lab_folder import LabFolder
from labaudit.store.run_folder import RunFolder, TrialFolder
from labaudit.verify.request import Anchors, Request
from labaudit.verify.targets import verify_target
from tests.experiments import Quiet, document
from tests.worker_run import make_worker_run, sign_receipt_anew


@dataclass
class Remote:
    """A run whose two trials a worker executed."""

    run: RunFolder
    keys: LabKeys
    worker: PrivateKey

    @property
    def trials(self) -> list[TrialFolder]:
        return [self.run.trial(planned.trial_id) for planned in read_schedule(self.run)]

    def seal_again(self) -> None:
        """As a coordinator would that changed its mind: everything after the trials is made anew and signed."""
        resolved, _ = read_resolved(self.run)
        for trial in self.trials:
            record = document(trial.trial_record)
            facts = TrialFacts.from_record(TrialRecord.from_json(record))
            atomic.write_bytes(trial.grades, grade_trial(observe_trial(trial, resolved, facts)).to_bytes())
            trial.trial_record.unlink()
            record["files"] = [entry.to_json() for entry in file_entries(trial.path, list(trial.files()))]
            atomic.write_json(trial.trial_record, record)
        shutil.rmtree(self.run.attestations, ignore_errors=True)
        self.run.manifest.unlink(missing_ok=True)
        sign_resolve_link(self.run, self.keys.signing)
        finish_run(self.run, resolved, self.keys, SystemClock(), Quiet())

    def codes(self) -> tuple[int, set[str]]:
        report = verify_target(self.run.path, Request(anchors=Anchors(keys=(self.keys.signing.public,))))
        return report.exit_code, {finding.code for finding in report.findings}


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("remote")
    make_worker_run(top)
    return top


@pytest.fixture
def remote(sealed: Path, tmp_path: Path) -> Remote:
    shutil.copytree(sealed, tmp_path / "copy")
    lab = LabFolder(tmp_path / "copy" / ".lab")
    return Remote(lab.find_run("latest"), ensure_keys(lab), worker_key(tmp_path / "copy" / "worker"))


def _edit(path: Path, **changes: Any) -> None:
    path.chmod(0o644)
    atomic.write_json(path, document(path) | changes)


def _output_changed(remote: Remote) -> None:
    # No other evidence repeats what the harness printed; a changed result would contradict its own log as well.
    atomic.write_bytes(remote.trials[0].stdout, b"another thing was printed\n")


def _receipt_of_the_other_trial(remote: Remote) -> None:
    first, second = remote.trials
    atomic.write_bytes(first.receipt, second.receipt.read_bytes())


def _called_local(remote: Remote) -> None:
    for trial in remote.trials:
        _edit(trial.trial_record, evidence_origin="local")


def _called_trusted(remote: Remote) -> None:
    path = remote.run.path / EXECUTOR_FILE
    workers = [worker | {"trusted": True} for worker in document(path)["workers"]]
    _edit(path, workers=workers)


LIES: dict[str, tuple[Callable[[Remote], object], str]] = {
    "a receipt with another worker's name": (
        lambda remote: _edit(remote.trials[0].receipt, worker_id="w2"),
        "receipt_signature",
    ),
    "a receipt with a later end": (
        lambda remote: _edit(remote.trials[0].receipt, ended_at="2030-01-01T00:00:00.000000Z"),
        "receipt_signature",
    ),
    "a receipt by a key that did not take part": (
        lambda remote: sign_receipt_anew(remote.trials[0], PrivateKey.generate()),
        "receipt_mismatch",
    ),
    "a receipt by a worker that did not take part": (
        lambda remote: sign_receipt_anew(remote.trials[0], remote.worker, worker_id="w9"),
        "receipt_mismatch",
    ),
    "the receipt of another trial": (_receipt_of_the_other_trial, "receipt_mismatch"),
    "a file changed after the worker signed": (_output_changed, "receipt_mismatch"),
    "a receipt thrown away": (lambda remote: remote.trials[0].receipt.unlink(), "receipt_missing"),
    "a receipt of another shape": (lambda remote: _edit(remote.trials[0].receipt, kernel=5), "receipt_malformed"),
    "a receipt not in canonical form": (
        lambda remote: atomic.write_bytes(
            remote.trials[0].receipt, canonical_bytes(document(remote.trials[0].receipt)).replace(b":", b": ", 1)
        ),
        "receipt_malformed",
    ),
    "a worker's trial called local": (_called_local, "receipt_mismatch"),
    "a worker called trusted": (_called_trusted, "receipt_mismatch"),
    "no list of workers": (lambda remote: (remote.run.path / EXECUTOR_FILE).unlink(), "file_missing"),
}


def test_what_an_honest_worker_signed_for_verifies(remote: Remote) -> None:
    assert remote.codes() == (0, set())


def test_sealing_again_without_a_change_still_verifies(remote: Remote) -> None:
    remote.seal_again()
    assert remote.codes() == (0, set())


@pytest.mark.parametrize("name", sorted(LIES))
def test_a_lie_about_a_receipt_fails_though_the_run_is_sealed_and_signed_again(name: str, remote: Remote) -> None:
    lie, code = LIES[name]
    lie(remote)
    remote.seal_again()
    exit_code, codes = remote.codes()
    assert code in codes
    assert exit_code in (1, 2)
    others = {"receipt_signature", "receipt_mismatch", "receipt_missing", "receipt_malformed", "file_missing"}
    assert codes <= others, "the run was sealed whole again: only what the worker signed contradicts it"


def test_a_receipt_signed_for_files_as_they_are_now_verifies(remote: Remote) -> None:
    """The limit of the check: whoever holds the worker's key can sign anything."""
    sign_receipt_anew(remote.trials[0], remote.worker)
    remote.seal_again()
    assert remote.codes() == (0, set())
