"""Keys: made once, readable by their owner alone, named as other tools name them, refused when of another kind."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from labaudit.attest.keys import PrivateKey, PublicKey
from labaudit.attest.log_key import LogKey, NoteVerifier
from labaudit.attest.trust_store import ensure_keys, new_pair, own_keys, trust, trusted_keys
from labaudit.errors import BadInput, EnvironmentLacks
from labaudit.store.lab_folder import LabFolder


@pytest.fixture
def lab(tmp_path: Path) -> LabFolder:
    return LabFolder(tmp_path / ".lab")


def test_the_first_use_makes_keys_that_only_their_owner_can_read(lab: LabFolder) -> None:
    keys = ensure_keys(lab)
    assert keys.made_now
    for path in (lab.signing_key, lab.log_key):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    again = ensure_keys(lab)
    assert not again.made_now
    assert again.signing.public.keyid == keys.signing.public.keyid


def test_signing_is_deterministic_and_verifies(lab: LabFolder) -> None:
    key = ensure_keys(lab).signing
    assert key.sign(b"data") == key.sign(b"data")
    assert key.public.verifies(key.sign(b"data"), b"data")
    assert not key.public.verifies(key.sign(b"data"), b"other")
    assert not key.public.verifies(b"", b"data")


def test_a_key_is_never_written_over(lab: LabFolder) -> None:
    new_pair(lab)
    before = lab.signing_key.read_bytes()
    with pytest.raises(EnvironmentLacks, match="already"):
        new_pair(lab)
    assert lab.signing_key.read_bytes() == before


def test_a_passphrase_locks_the_key(lab: LabFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    new_pair(lab, passphrase=b"open sesame")
    assert b"ENCRYPTED" in lab.signing_key.read_bytes()
    with pytest.raises(BadInput, match="locked"):
        ensure_keys(lab)
    with pytest.raises(BadInput, match="does not fit"):
        ensure_keys(lab, passphrase=b"wrong")
    monkeypatch.setenv("LABAUDIT_KEY_PASSPHRASE", "open sesame")
    assert ensure_keys(lab).signing.public.pem == lab.public_key.read_text()


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".."])
def test_a_name_that_is_no_file_name_is_refused(lab: LabFolder, name: str) -> None:
    with pytest.raises(BadInput):
        new_pair(lab, name=name)


def test_trust_keeps_names_apart(lab: LabFolder, tmp_path: Path) -> None:
    one, two = PrivateKey.generate(), PrivateKey.generate()
    one.save(tmp_path / "one.key", tmp_path / "pub.pem")
    assert trust(lab, tmp_path / "pub.pem", name="friend").key.keyid == one.public.keyid
    trust(lab, tmp_path / "pub.pem", name="friend")
    two.save(tmp_path / "two.key", tmp_path / "two.pub")
    with pytest.raises(BadInput, match="another key"):
        trust(lab, tmp_path / "two.pub", name="friend")
    assert [item.name for item in trusted_keys(lab.trust)] == ["friend"]
    assert own_keys(lab) == []


def pem(key: object) -> bytes:
    public = key.public_key()  # type: ignore[attr-defined]
    return bytes(public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo))


@pytest.mark.parametrize(
    "data",
    [
        pem(ed25519.Ed25519PrivateKey.generate()),
        pem(rsa.generate_private_key(65537, 2048)),
        pem(ec.generate_private_key(ec.SECP384R1())),
        pem(ec.generate_private_key(ec.SECP256K1())),
        b"",
        b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
        b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    ],
    ids=["ed25519", "rsa", "p384", "secp256k1", "empty", "broken", "certificate"],
)
def test_only_a_p256_public_key_is_one(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "key.pub").write_bytes(data)
    with pytest.raises(BadInput):
        PublicKey.load(tmp_path / "key.pub")


def test_a_private_key_file_is_no_public_key(tmp_path: Path) -> None:
    PrivateKey.generate().save(tmp_path / "a.key", tmp_path / "a.pub")
    with pytest.raises(BadInput):
        PublicKey.load(tmp_path / "a.key")
    with pytest.raises(BadInput):
        PrivateKey.load(tmp_path / "a.pub")


def test_a_note_verifier_reads_back_and_refuses_what_was_changed() -> None:
    verifier = LogKey.generate().verifier("agent-lab.local/runs/r1")
    text = str(verifier)
    assert NoteVerifier.parse(text) == verifier
    for broken in (
        text.replace("r1", "r2"),
        text[:-4] + "AAAA",
        text + "x",
        "name+00000000+AAAA",
        "",
        "a b+12345678+AAAA",
    ):
        with pytest.raises(BadInput):
            NoteVerifier.parse(broken)


def test_two_keys_in_one_file_are_no_key(lab: LabFolder, tmp_path: Path) -> None:
    one, two = new_pair(lab, name="one"), new_pair(lab, name="two")
    (tmp_path / "both.pub").write_bytes(one.path.read_bytes() + two.path.read_bytes())
    with pytest.raises(BadInput, match="more than one key"):
        PublicKey.load(tmp_path / "both.pub")


def test_a_pipe_or_a_device_as_a_key_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.pub")
    for path in (tmp_path / "pipe.pub", Path("/dev/zero")):
        with pytest.raises(BadInput, match="no regular file"):
            PublicKey.load(path)
