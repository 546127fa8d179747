"""What a signed statement says of success is what was measured; a harness's own word is called so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from labaudit.attest import statements
from labaudit.attest.bundles import parse_bundle
from labaudit.attest.keys import PublicKey
from labaudit.attest.run_reader import RunFacts
from labaudit.runner.checkpoints.checkpoint import CheckpointManager
from labaudit.store.event_log import read_events
from labaudit.store.lab_folder import LabFolder
from labaudit.store.run_folder import RunFolder
from labaudit.verify.request import Anchors, Request
from labaudit.verify.targets import verify_target
from tests.experiments import document, only_trial, run, write_experiment


def predicate(folder: RunFolder, kind: str) -> dict[str, Any]:
    return dict(json.loads(parse_bundle(folder.bundle(kind).read_bytes(), where=kind).envelope.payload)["predicate"])


def verdict(folder: Path, sealed: RunFolder) -> str:
    key = PublicKey.load(LabFolder(folder / ".lab").public_key)
    return verify_target(sealed.path, Request(anchors=Anchors(keys=(key,)))).verdict


def test_a_harness_that_calls_a_wrong_answer_success_does_not_pass(tmp_path: Path) -> None:
    """The second arm greets with another word than expected, and says `success` all the same."""
    write_experiment(tmp_path)
    sealed = run(tmp_path, sign=True).run
    claims = {(one["metric"], one["variant"]): one for one in predicate(sealed, "eval")["claims"]}
    assert claims["success", "base"]["value"] == "1.000000"
    assert claims["success", "v0"]["value"] == "0.000000"
    assert claims["success", "v0"]["source"] == "evaluator:exact"
    assert claims["outcome_success_rate", "v0"]["value"] == "1.000000"
    assert "reported for itself" in claims["outcome_success_rate", "v0"]["source"]
    result = predicate(sealed, "result")
    assert result["result"] == "WARNED"
    assert "reported for itself" in result["basis"]
    assert verdict(tmp_path, sealed) == "verified"


def test_every_right_answer_passes(tmp_path: Path) -> None:
    write_experiment(tmp_path, variants=())
    assert predicate(run(tmp_path, sign=True).run, "result")["result"] == "PASSED"


def test_a_run_with_the_claims_of_the_first_version_verifies_and_an_invented_claim_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def first(facts: RunFacts) -> dict[str, Any]:
        return statements._eval_result(facts, statements._outcome_claims(facts))

    def invented(facts: RunFacts) -> dict[str, Any]:
        claims = [claim | {"value": "1.000000"} for claim in statements.eval_predicate(facts)["claims"]]
        return statements._eval_result(facts, claims)

    for name, builder, expected in (("first", first, "verified"), ("invented", invented, "failed")):
        folder = tmp_path / name
        write_experiment(folder)
        with monkeypatch.context() as patched:
            patched.setitem(statements._BUILDERS, "eval", builder)
            sealed = run(folder, sign=True).run
        assert verdict(folder, sealed) == expected


def test_a_checkpoint_at_the_end_that_cannot_be_taken_costs_the_checkpoint_and_not_the_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("a file changed while it was read")

    monkeypatch.setattr(CheckpointManager, "save", fail)
    write_experiment(tmp_path, variants=(), tasks=[{"id": "a", "name": "Ann", "expected": "Hello Ann"}],
                     runtime={"checkpoints": {"at_end": True}})  # fmt: skip
    trial, record = only_trial(run(tmp_path).run)
    assert (record.attempt, record.outcome) == (1, "success")
    assert "checkpoint.failed" in [event["event_type"] for event in read_events(trial.events)]


def test_a_trial_without_an_output_is_counted_and_not_called_a_result(tmp_path: Path) -> None:
    write_experiment(tmp_path, agent="raise SystemExit(3)", variants=())
    rows = document(run(tmp_path).run.inclusion)["rows"]
    assert {(row["rule"], row["outcome"]) for row in rows} <= {("I1", "missing"), ("I1", "error")}
    assert all("without a result" in row["reason"] for row in rows)
