"""Runs signed keyless against a local Sigstore: its own verifiers accept them, and refuse a wrong identity."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from labaudit.attest.signers import KeylessSigner, KeySigner
from labaudit.attest.timestamps import TimestampAuthority
from labaudit.errors import BadInput
from labaudit.verify.policy import parse_policy
from labaudit.verify.request import Anchors, Request
from labaudit.verify.targets import verify_target
from labaudit.verify.verdict import Report
from tests.interop.conftest import NODE, Stack, running_stack
from tests.make_run import MadeRun, RunPlan, make_run

pytestmark = [pytest.mark.node, pytest.mark.xdist_group("sigstore")]
WHO = "runner@lab.test"


@pytest.fixture(scope="module")
def made(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> MadeRun:
    signer = KeylessSigner(trust_config=stack.trust_config, identity_token=stack.token())
    return make_run(tmp_path_factory.mktemp("keyless"), RunPlan(analysis=False), signer=signer)


def check(path: Path, stack: Stack, **changes: object) -> Report:
    given: dict[str, object] = {"identity": WHO, "issuer": stack.issuer, "trusted_root": stack.trusted_root}
    return verify_target(path, Request(anchors=Anchors(**(given | changes))))  # type: ignore[arg-type]


def codes(report: Report) -> set[str]:
    return {finding.code for finding in report.findings}


def test_a_keyless_run_verifies_under_its_identity(made: MadeRun, stack: Stack) -> None:
    report = check(made.run.path, stack)
    assert (report.verdict, report.provenance) == ("verified", "attested")
    assert report.signers == [f"{WHO} ({stack.issuer})"]


@pytest.mark.parametrize(
    "changes",
    [
        {"identity": "lab.test"},
        {"identity": "unner@lab.test"},
        {"identity": "runner@lab.test.example"},
        {"identity": ".*"},
        {"issuer": "http://127.0.0.1"},
        {"issuer": "https://accounts.example"},
    ],
)
def test_an_identity_is_compared_whole(made: MadeRun, stack: Stack, changes: dict[str, object]) -> None:
    report = check(made.run.path, stack, **changes)
    assert (report.exit_code, codes(report)) == (3, {"keyless_identity"})


def test_an_identity_that_contains_the_trusted_one_is_not_it(stack: Stack, tmp_path: Path) -> None:
    evil = f"evil{WHO}"
    signer = KeylessSigner(trust_config=stack.trust_config, identity_token=stack.token(evil))
    made = make_run(tmp_path, RunPlan(analysis=False), signer=signer)
    assert codes(check(made.run.path, stack)) == {"keyless_identity"}
    assert check(made.run.path, stack, identity=evil).verdict == "verified"


def test_a_certificate_that_was_not_valid_then_is_refused(tmp_path: Path) -> None:
    """The certificate is dated an hour after the moment that the log and the timestamp give for the signature."""
    (tmp_path / "stack").mkdir()
    with running_stack(tmp_path / "stack", minutes_ahead=60) as early:
        signer = KeylessSigner(trust_config=early.trust_config, identity_token=early.token())
        made = make_run(tmp_path, RunPlan(analysis=False), signer=signer)
        report = check(made.run.path, early)
    assert (report.exit_code, codes(report)) == (1, {"keyless_invalid"})


def test_another_trusted_root_vouches_for_nothing(made: MadeRun, stack: Stack, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with running_stack(tmp_path / "other") as other:
        report = check(made.run.path, stack, trusted_root=other.trusted_root)
    assert (report.exit_code, codes(report)) == (1, {"keyless_invalid"})


def test_what_is_no_trusted_root_is_a_mistake_of_the_caller(made: MadeRun, stack: Stack, tmp_path: Path) -> None:
    (tmp_path / "none.json").write_text("{}")
    for path in (made.run.attestations / "trusted_root.json", tmp_path / "none.json", tmp_path / "absent.json"):
        with pytest.raises(BadInput):
            check(made.run.path, stack, trusted_root=path)


def test_a_changed_statement_log_entry_or_certificate_is_found(made: MadeRun, stack: Stack, tmp_path: Path) -> None:
    for number, place in enumerate(
        (
            ["dsseEnvelope", "payload"],
            ["verificationMaterial", "tlogEntries", 0, "canonicalizedBody"],
            ["verificationMaterial", "certificate", "rawBytes"],
            ["dsseEnvelope", "signatures", 0, "sig"],
        )
    ):
        path = tmp_path / str(number) / made.run.path.name
        shutil.copytree(made.run.path, path)
        bundle = path / "attestations" / "result.sigstore.json"
        value = json.loads(bundle.read_bytes())
        target = value
        for key in place[:-1]:
            target = target[key]
        text = target[place[-1]]
        target[place[-1]] = text[:40] + ("A" if text[40] != "A" else "B") + text[41:]
        bundle.write_text(json.dumps(value, sort_keys=True, separators=(",", ":")))
        report = check(path, stack)
        assert report.exit_code in (1, 2)
        assert any(finding.path.endswith("result.sigstore.json") for finding in report.findings), place


def test_keys_do_not_make_a_keyless_signer_trusted(made: MadeRun) -> None:
    report = verify_target(made.run.path, Request(anchors=Anchors(keys=(made.signing.public,))))
    assert (report.exit_code, codes(report)) == (3, {"signer_not_trusted"})


def test_without_an_identity_it_is_policy_unmet(made: MadeRun) -> None:
    report = verify_target(made.run.path, Request())
    assert (report.exit_code, codes(report)) == (3, {"no_trust_anchor"})


def test_sigstores_own_python_verifier_accepts_the_bundle(made: MadeRun, stack: Stack) -> None:
    from sigstore.errors import VerificationError
    from sigstore.models import Bundle, TrustedRoot
    from sigstore.verify import Verifier
    from sigstore.verify.policy import Identity

    verifier = Verifier(trusted_root=TrustedRoot.from_file(str(stack.trusted_root)))
    bundle = Bundle.from_json(made.run.bundle("run").read_bytes())
    kind, payload = verifier.verify_dsse(bundle, Identity(identity=WHO, issuer=stack.issuer))
    assert kind == "application/vnd.in-toto+json"
    assert json.loads(payload)["subject"][0]["name"] == "manifest.json"
    with pytest.raises(VerificationError):
        verifier.verify_dsse(bundle, Identity(identity="someone@else.test", issuer=stack.issuer))


def test_the_npm_verifier_accepts_the_bundle_and_refuses_another_identity(made: MadeRun, stack: Stack) -> None:
    def npm(identity: str) -> int:
        command = ["node", "verify_bundle.js", str(made.run.bundle("run")), str(stack.trusted_root)]
        command += ["--identity", identity, "--issuer", stack.issuer]
        return subprocess.run(command, cwd=NODE, capture_output=True, timeout=60).returncode

    assert npm(WHO) == 0
    assert npm("unner@lab.test") == 1


# --- timestamps on own-key bundles ---------------------------------------------------------------------------------

DEMANDING = parse_policy(b"version: 1\nname: stamped\ntimestamp: required\n", where="stamped.yaml")


def stamped_request(made: MadeRun, root: Path | None) -> Request:
    return Request(anchors=Anchors(keys=(made.signing.public,), trusted_root=root), policy=DEMANDING)


def test_a_timestamp_is_proven_absent_or_unproven(stack: Stack, tmp_path: Path) -> None:
    from labaudit.attest.trust_store import ensure_keys
    from labaudit.store.lab_folder import LabFolder

    key = ensure_keys(LabFolder(tmp_path / ".lab")).signing
    authority = TimestampAuthority(f"{stack.issuer}/api/v1/timestamp")
    made = make_run(tmp_path, RunPlan(analysis=False), signer=KeySigner(key, authority))
    assert verify_target(made.run.path, stamped_request(made, stack.trusted_root)).verdict == "verified"
    without_root = verify_target(made.run.path, stamped_request(made, None))
    assert (without_root.exit_code, codes(without_root)) == (3, {"timestamp_unproven"})
    empty = made.run.attestations / "trusted_root.json"
    assert codes(verify_target(made.run.path, stamped_request(made, empty))) == {"timestamp_unproven"}


def test_a_run_without_timestamps_does_not_meet_a_policy_that_demands_them(stack: Stack, tmp_path: Path) -> None:
    made = make_run(tmp_path, RunPlan(analysis=False))
    report = verify_target(made.run.path, stamped_request(made, stack.trusted_root))
    assert (report.exit_code, codes(report)) == (3, {"timestamp_absent"})


def test_a_timestamp_of_another_signature_or_no_timestamp_at_all_is_found(stack: Stack, tmp_path: Path) -> None:
    from labaudit.attest import bundles
    from labaudit.attest.trust_store import ensure_keys
    from labaudit.store.lab_folder import LabFolder

    key = ensure_keys(LabFolder(tmp_path / ".lab")).signing
    authority = TimestampAuthority(f"{stack.issuer}/api/v1/timestamp")
    made = make_run(tmp_path, RunPlan(analysis=False), signer=KeySigner(key, authority))
    path = made.run.bundle("result")
    bundle = bundles.parse_bundle(path.read_bytes(), where="result")
    for token in (b"anything", authority.stamp(b"another signature")):
        path.write_bytes(bundles.render(bundle.envelope, str(bundle.hint), (token,)))
        report = verify_target(made.run.path, Request(anchors=Anchors(keys=(key.public,))))
        assert ("bundle_field_differs", "attestations/result.sigstore.json") in {item[:2] for item in report.findings}
