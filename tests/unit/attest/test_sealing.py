"""Sealing: what is written, in which order it refers, and that the same run gives the same bytes."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from labaudit.attest.bundles import parse_bundle
from labaudit.attest.keys import PrivateKey
from labaudit.attest.layout import link_name
from labaudit.attest.seal import seal_run, sign_resolve_link, sign_run
from labaudit.attest.signers import KeySigner
from labaudit.attest.statements import ALWAYS, PREDICATE_TYPES
from labaudit.core.canonical import is_canonical
from labaudit.core.clock import FixedClock
from labaudit.core.digest import hash_file
from labaudit.errors import BadInput
from labaudit.records.schema_registry import validate
from labaudit.store.run_folder import RunFolder
from tests.make_run import MadeRun, RunPlan, make_run

CLOCK = FixedClock(datetime(2026, 11, 18, 10, tzinfo=UTC))


@pytest.fixture
def unsealed(made: MadeRun, tmp_path: Path) -> RunFolder:
    path = tmp_path / made.run.path.name
    shutil.copytree(made.run.path, path)
    run = RunFolder(path)
    run.manifest.unlink()
    run.attestation.unlink()
    shutil.rmtree(run.attestations)
    return run


def contents(run: RunFolder) -> dict[str, str]:
    return {path.relative_to(run.path).as_posix(): hash_file(path)[0] for path in run.path.rglob("*") if path.is_file()}


def statement(run: RunFolder, kind: str) -> dict[str, object]:
    return dict(json.loads(parse_bundle(run.bundle(kind).read_bytes(), where=kind).envelope.payload))


def test_manifest_and_summary_keep_to_their_schemas(made: MadeRun) -> None:
    for path, schema in ((made.run.manifest, "manifest_v1"), (made.run.attestation, "attestation_v1")):
        assert validate(schema, json.loads(path.read_bytes())) == []
        assert is_canonical(path.read_bytes())


def test_sealing_twice_gives_the_same_bytes(made: MadeRun, unsealed: RunFolder, tmp_path: Path) -> None:
    again = RunFolder(tmp_path / "again" / unsealed.path.name)
    shutil.copytree(unsealed.path, again.path)
    for run in (unsealed, again):
        seal_run(run, KeySigner(made.signing), clock=CLOCK, log_key=made.log_key)
    assert contents(unsealed) == contents(again)


def test_no_file_of_a_run_holds_an_absolute_path(made: MadeRun) -> None:
    needle = str(made.run.path.parent).encode()
    assert [path for path in made.run.path.rglob("*") if path.is_file() and needle in path.read_bytes()] == []


def test_a_sealed_run_is_never_sealed_again(made: MadeRun) -> None:
    with pytest.raises(BadInput, match="sealed already"):
        seal_run(made.run, KeySigner(made.signing), clock=CLOCK, log_key=made.log_key)


def test_every_statement_is_about_the_manifest_alone(made: MadeRun) -> None:
    sha256 = hash_file(made.run.manifest)[0]
    for kind, predicate_type in PREDICATE_TYPES.items():
        found = statement(made.run, kind)
        assert found["_type"] == "https://in-toto.io/Statement/v1"
        assert found["subject"] == [{"name": "manifest.json", "digest": {"sha256": sha256}}]
        assert found["predicateType"] == predicate_type


def test_a_run_without_sbom_has_the_five_kinds_and_says_what_is_missing(tmp_path: Path) -> None:
    made = make_run(tmp_path, RunPlan(with_sbom=False, analysis=False))
    assert made.sealed.kinds == ALWAYS
    assert not made.run.bundle("sbom-spdx").exists()
    summary = json.loads(made.run.attestation.read_bytes())
    assert summary["sbom"]["missing"] == [{"subject": "image", "reason": "not asked for"}]


def test_an_unsigned_run_has_a_manifest_and_no_statement(tmp_path: Path) -> None:
    made = make_run(tmp_path, RunPlan(analysis=False), sign=False)
    assert made.sealed.signer is None
    assert made.run.manifest.is_file()
    assert not made.run.attestations.exists()


def test_signing_without_a_log_key_is_refused(made: MadeRun, unsealed: RunFolder) -> None:
    with pytest.raises(BadInput, match="log key"):
        seal_run(unsealed, KeySigner(made.signing), clock=CLOCK)


def test_a_trial_without_a_record_stops_the_sealing(made: MadeRun, unsealed: RunFolder) -> None:
    next(unsealed.trials.iterdir()).joinpath("trial_record.json").unlink()
    with pytest.raises(BadInput, match="no record"):
        seal_run(unsealed, KeySigner(made.signing), clock=CLOCK, log_key=made.log_key)


def test_an_artifact_in_no_list_becomes_a_run_level_file(made: MadeRun, unsealed: RunFolder) -> None:
    reference = unsealed.artifacts.put(b"orphan", "text/plain")
    seal_run(unsealed, KeySigner(made.signing), clock=CLOCK, log_key=made.log_key)
    listed = {entry["path"] for entry in json.loads(unsealed.manifest.read_bytes())["files"]}
    name = reference.rpartition("/")[2]
    assert {f"artifacts/sha256/{name}", f"artifacts/meta/{name}.json"} <= listed


def test_counts_in_statements_come_from_rows(made: MadeRun) -> None:
    counts = statement(made.run, "result")["predicate"]["counts"]  # type: ignore[index]
    assert counts == {
        "scheduled": 6,
        "status": {"included": 5, "lost": 1},
        "outcome": {"failure": 1, "none": 1, "success": 4},
    }


def test_another_key_gives_other_signatures_over_the_same_statements(made: MadeRun, unsealed: RunFolder) -> None:
    shutil.copy(made.run.manifest, unsealed.manifest)
    shutil.copy(made.run.attestation, unsealed.attestation)
    other = PrivateKey.generate()
    sign_run(unsealed, KeySigner(other), log_key=made.log_key)
    for kind in ALWAYS[1:]:
        assert statement(unsealed, kind) == statement(made.run, kind)
        assert unsealed.bundle(kind).read_bytes() != made.run.bundle(kind).read_bytes()


def test_a_plan_signed_with_a_key_that_is_gone_leaves_no_link_that_nobody_can_check(
    made: MadeRun, unsealed: RunFolder
) -> None:
    sign_resolve_link(unsealed, PrivateKey.generate())
    seal_run(unsealed, KeySigner(made.signing), clock=CLOCK, log_key=made.log_key)
    links = {path.name for path in unsealed.attestations.glob("resolve.*.link")}
    assert links == {link_name("resolve", made.signing.public)}
