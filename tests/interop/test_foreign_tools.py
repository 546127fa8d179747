"""The same run checked without any code of ours: in-toto, securesystemslib, openssl, coreutils, ssh, npm, pymerkle.

Each test is one command of docs/verify-without-labaudit.md, on the clean run and on one that was changed.
"""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.make_run import MadeRun, RunPlan, make_run

NODE = Path(__file__).parents[1] / "node"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> MadeRun:
    return make_run(tmp_path_factory.mktemp("foreign"), RunPlan(analysis=False))


@pytest.fixture
def copied(made: MadeRun, tmp_path: Path) -> Path:
    path = tmp_path / made.run.path.name
    shutil.copytree(made.run.path, path)
    return path


def run(*command: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True, timeout=120)


def in_toto_verify(run_folder: Path, key: Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).parent / "in-toto-verify"
    return run(program, "--layout", "root.layout", "--verification-keys", key, cwd=run_folder / "attestations")


def test_in_toto_verify_accepts_layout_and_links(made: MadeRun) -> None:
    done = in_toto_verify(made.run.path, made.lab.public_key)
    assert done.returncode == 0, done.stderr


def test_in_toto_verify_refuses_another_key_and_a_foreign_link(made: MadeRun, copied: Path, tmp_path: Path) -> None:
    stranger = make_run(tmp_path / "stranger", RunPlan(analysis=False))
    assert in_toto_verify(copied, stranger.lab.public_key).returncode == 1
    link = next((copied / "attestations").glob("run.*.link"))
    envelope = json.loads(link.read_bytes())
    statement = base64.b64decode(envelope["payload"]).replace(b'"sha256":"', b'"sha256":"0', 1)
    envelope["payload"] = base64.b64encode(statement).decode()
    link.write_text(json.dumps(envelope))
    assert in_toto_verify(copied, made.lab.public_key).returncode == 1


def test_securesystemslib_accepts_every_envelope(made: MadeRun) -> None:
    from securesystemslib.dsse import Envelope
    from securesystemslib.exceptions import VerificationError
    from securesystemslib.signer import SSlibKey

    pem = made.lab.public_key.read_text()
    lines = (made.run.attestations / f"{made.run.run_id}.intoto.jsonl").read_bytes().splitlines()
    assert len(lines) == 7
    for line in lines:
        data = json.loads(line)
        key = SSlibKey(data["signatures"][0]["keyid"], "ecdsa", "ecdsa-sha2-nistp256", {"public": pem})
        assert Envelope.from_dict(json.loads(line)).verify([key], 1)
        data["payloadType"] = "application/json"
        with pytest.raises(VerificationError):
            Envelope.from_dict(data).verify([key], 1)


def test_openssl_accepts_a_signature_over_the_pre_authentication_encoding(made: MadeRun, tmp_path: Path) -> None:
    envelope = json.loads(made.run.bundle("run").read_bytes())["dsseEnvelope"]
    payload, kind = base64.b64decode(envelope["payload"]), envelope["payloadType"].encode()
    (tmp_path / "signed").write_bytes(b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload))
    (tmp_path / "sig").write_bytes(base64.b64decode(envelope["signatures"][0]["sig"]))
    command = ("openssl", "dgst", "-sha256", "-verify", made.lab.public_key, "-signature", tmp_path / "sig")
    assert run(*command, tmp_path / "signed").stdout.strip() == "Verified OK"
    (tmp_path / "signed").write_bytes((tmp_path / "signed").read_bytes() + b" ")
    assert run(*command, tmp_path / "signed").returncode == 1


def test_sha256sum_accepts_the_list_and_names_a_changed_file(made: MadeRun, copied: Path) -> None:
    command = ("sha256sum", "--check", "--strict", "--quiet", "attestations/SHA256SUMS")
    done = run(*command, cwd=copied)
    assert (done.returncode, done.stdout) == (0, "")
    listed = (copied / "attestations/SHA256SUMS").read_text().count("\n")
    proofs = len(list((copied / "attestations/proofs").iterdir()))
    assert listed == sum(path.is_file() for path in copied.rglob("*")) - proofs - 1
    (copied / "grades.json").write_bytes(b"{}")
    assert "grades.json: FAILED" in run(*command, cwd=copied).stdout


def test_ssh_keygen_prints_the_key_id_that_we_print(made: MadeRun, tmp_path: Path) -> None:
    converted = run("ssh-keygen", "-i", "-m", "PKCS8", "-f", made.lab.public_key)
    (tmp_path / "key.pub").write_text(converted.stdout)
    assert made.signing.public.keyid in run("ssh-keygen", "-lf", tmp_path / "key.pub").stdout


def test_pymerkle_gives_the_same_run_tree_and_takes_a_proof(made: MadeRun) -> None:
    from pymerkle import InmemoryTree, verify_inclusion
    from pymerkle.proof import MerkleProof

    from labaudit.core.merkle import inclusion_proof, leaf_hash

    rows = [json.loads(line) for line in made.run.schedule.read_bytes().splitlines()]
    records = [made.run.trial(row["trial_id"]).trial_record.read_bytes() for row in rows]
    tree = InmemoryTree(algorithm="sha256")
    for record in records:
        tree.append_entry(record)
    manifest = json.loads(made.run.manifest.read_bytes())
    assert tree.get_root().hex() == manifest["run_tree"]["root"]
    theirs = tree.prove_inclusion(3)
    assert isinstance(theirs, MerkleProof)
    verify_inclusion(leaf_hash(records[2]), tree.get_root(), theirs)
    ours = inclusion_proof([leaf_hash(record) for record in records], 2)
    assert set(ours) <= set(theirs.path)


@pytest.mark.node
def test_the_npm_verifier_accepts_every_key_bundle_and_refuses_another_key(made: MadeRun, tmp_path: Path) -> None:
    root = made.run.attestations / "trusted_root.json"
    for path in sorted(made.run.attestations.glob("*.sigstore.json")):
        done = run("node", "verify_bundle.js", path, root, "--key", made.lab.public_key, cwd=NODE)
        assert (done.returncode, done.stdout) == (0, "verified\n"), done.stderr
    other = make_run(tmp_path / "other", RunPlan(analysis=False)).lab.public_key
    assert run("node", "verify_bundle.js", made.run.bundle("run"), root, "--key", other, cwd=NODE).returncode == 1
    changed = tmp_path / "changed.json"
    changed.write_bytes(made.run.bundle("run").read_bytes().replace(b'"payload":"eyJ', b'"payload":"eyK', 1))
    assert run("node", "verify_bundle.js", changed, root, "--key", made.lab.public_key, cwd=NODE).returncode == 1
