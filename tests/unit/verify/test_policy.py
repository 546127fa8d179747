"""A policy asks for more than being intact; a typo in one must never weaken it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from labaudit.attest.keys import PrivateKey
from labaudit.errors import BadInput
from labaudit.verify.policy import Policy, load_policy, parse_policy
from labaudit.verify.request import Anchors
from labaudit.verify.verdict import MAX_FINDINGS_PER_STEP, Finding, Report, bounded
from tests.conformance.verify.tampering import Spoiled, spoil
from tests.make_run import MadeRun, RunPlan, make_run
from tests.unit.verify.conftest import codes


def policy(text: str) -> Policy:
    return parse_policy(f"version: 1\nname: mine\n{text}".encode(), where="mine.yaml")


@pytest.mark.parametrize("name", ["default", "release", "publication"])
def test_bundled_policies_load_and_demand_the_five_kinds(name: str) -> None:
    assert load_policy(name).kinds == ("run", "result", "grades", "evidence", "eval")


def test_the_default_policy_has_no_minimum_grade() -> None:
    found = load_policy("default")
    assert (found.minimum_grades, found.minimum_level, found.recomputed) == ((), None, ())


@pytest.mark.parametrize(
    "text",
    [
        "kindz: [run]",
        "kinds: [run, rumour]",
        "kinds: run",
        "minimum_grades: {isolation: airtight}",
        "minimum_grades: {isolatoin: sealed}",
        "minimum_grades: sealed",
        "minimum_level: sdk",
        "sbom: yes please",
        "recomputed: [grade]",
        "max_lost_fraction: 5",
        "max_lost_fraction: true",
        "timestamp: 1",
        "signers: {identities: [{identity: a}]}",
        "signers: {keys: SHA256:x}",
        "kinds: [run]\nkinds: []",
        "signers: {key: [SHA256:x]}",
        "signers: {keys: []}",
        "signers: {}",
        "refuse_caveats: [imported]",
        "minimum_level: [cli_events]",
        "description: 2026-13-45",
        "description: !!float x",
        "[",
        "- a",
    ],
)
def test_a_typo_is_bad_input(text: str) -> None:
    with pytest.raises(BadInput):
        policy(text)


@pytest.mark.parametrize(
    "data", [b"", b"version: 2", b"version: true", b"kinds: [run]", b"\xff\xfe", b"!!python/object:os.system {}"]
)
def test_what_is_no_policy_is_bad_input(data: bytes) -> None:
    with pytest.raises(BadInput):
        parse_policy(data, where="x.yaml")


def test_an_unknown_name_or_file_is_bad_input(tmp_path: Path) -> None:
    for name in ("strict", str(tmp_path / "none.yaml")):
        with pytest.raises(BadInput):
            load_policy(name)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("minimum_grades: {isolation: sealed}", "grade_too_low"),
        ("minimum_level: sdk_full", "level_too_low"),
        ("recomputed: [analysis]", "not_recomputed"),
        ("max_lost_fraction: 0.1", "trials_lost"),
        ("timestamp: required", "timestamp_absent"),
        ("signers: {keys: ['SHA256:somebody-else']}", "signer_not_allowed"),
        ("signers: {identities: [{identity: a@b.test, issuer: https://i.test}]}", "signer_not_allowed"),
    ],
)
def test_each_demand_has_its_own_reason(made: MadeRun, check: Callable[..., Report], text: str, code: str) -> None:
    report = check(made.run.path, policy=policy(text))
    assert (report.exit_code, codes(report)) == (3, {code})


@pytest.mark.parametrize(
    "text",
    [
        "minimum_grades: {isolation: bounded, provenance: attested}",
        "recomputed: [grades]",
        "sbom: required",
        "max_lost_fraction: 0.5",
        "kinds: [run, sbom-spdx]",
        "refuse_caveats: [imported_evidence]",
    ],
)
def test_a_demand_that_is_met_verifies(made: MadeRun, check: Callable[..., Report], text: str) -> None:
    assert check(made.run.path, policy=policy(text)).verdict == "verified"


def test_the_signer_that_a_policy_names_is_accepted(made: MadeRun, check: Callable[..., Report]) -> None:
    named = policy(f"signers: {{keys: ['{made.signing.public.keyid}']}}")
    assert check(made.run.path, policy=named).verdict == "verified"


def test_a_policy_never_makes_anyone_trusted(made: MadeRun, check: Callable[..., Report]) -> None:
    named = policy(f"signers: {{keys: ['{made.signing.public.keyid}']}}")
    report = check(made.run.path, policy=named, anchors=Anchors())
    assert (report.exit_code, codes(report)) == (3, {"no_trust_anchor"})
    stranger = Anchors(keys=(PrivateKey.generate().public,))
    assert check(made.run.path, policy=named, anchors=stranger).exit_code == 3


def test_provenance_is_what_this_verification_established(made: MadeRun, check: Callable[..., Report]) -> None:
    attested = policy("minimum_grades: {provenance: attested}")
    assert check(made.run.path, policy=attested).provenance == "attested"
    report = check(made.run.path, policy=attested, anchors=Anchors())
    assert codes(report) == {"no_trust_anchor", "grade_too_low"}


def test_a_run_without_sbom_is_signed_and_not_attested(tmp_path: Path) -> None:
    from labaudit.verify.request import Request
    from labaudit.verify.targets import verify_target

    made = make_run(tmp_path, RunPlan(with_sbom=False, analysis=False))
    request = Request(anchors=Anchors(keys=(made.signing.public,)))
    assert verify_target(made.run.path, request).provenance == "signed"
    wanting = Request(anchors=request.anchors, policy=policy("sbom: required"))
    assert codes(verify_target(made.run.path, wanting)) == {"sbom_absent"}


def test_integrity_only_asks_for_no_signer_and_says_so(made: MadeRun, check: Callable[..., Report]) -> None:
    report = check(made.run.path, anchors=Anchors(), integrity_only=True)
    assert (report.exit_code, report.provenance, report.signers) == (0, "hashed", [])
    assert any("no signer that you trust" in line for line in report.not_established)


def test_an_identity_alone_does_not_accept_somebodys_key(made: MadeRun, check: Callable[..., Report]) -> None:
    someone = Anchors(identity="ci@lab.example", issuer="https://issuer.example")
    proof = next((made.run.attestations / "proofs").iterdir())
    for target in (made.run.path, proof):
        report = check(target, anchors=someone)
        assert (report.verdict, codes(report)) == ("policy_unmet", {"signer_not_trusted"})


def test_integrity_only_holds_whoever_else_is_trusted(made: MadeRun, check: Callable[..., Report]) -> None:
    stranger = Anchors(keys=(PrivateKey.generate().public,))
    report = check(made.run.path, anchors=stranger, integrity_only=True)
    assert (report.verdict, report.signers) == ("verified", [])


def test_a_result_that_was_judged_and_does_not_count_is_told_and_may_be_refused(
    copied: Path, made: MadeRun, check: Callable[..., Report]
) -> None:
    rows = json.loads((copied / "inclusion.json").read_bytes())["rows"]
    lost = next(row["trial_id"] for row in rows if row["status"] == "lost")
    run = Spoiled(copied, copied, made.signing, made.log_key, lost, lost, "")
    judged = {"type": "trial.judged", "payload": {"outcome": "failure"}}
    spoil(run, [{"rewrite_log": {"trial": lost, "events": [{"type": "trial.started"}, judged]}}, "refresh", "reseal"])
    report = check(copied)
    log = f"trials/{lost}/events.jsonl"
    assert any(log in line for line in report.not_established)
    assert "caveat_refused" not in codes(report)
    strict = check(copied, policy=policy("refuse_caveats: [result_measured_again]"))
    assert ("caveat_refused", log) in {item[:2] for item in strict.findings}
    assert check(made.run.path, policy=policy("refuse_caveats: [result_measured_again]")).verdict == "verified"


def test_light_findings_never_crowd_out_a_heavy_one() -> None:
    light = [Finding("unreadable", f"file-{number}", "") for number in range(1000)]
    kept = bounded([*light, Finding("digest_mismatch", "last", "")])
    assert kept[-1].path == "last"
    assert len(kept) == MAX_FINDINGS_PER_STEP + 1
