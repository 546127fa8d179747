"""Two runs that start at once in a lab without keys sign with one pair, the one that is on the disk."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from labaudit.attest.keys import PrivateKey, PublicKey
from labaudit.attest.trust_store import LabKeys, ensure_keys
from labaudit.errors import BadInput
from labaudit.store.lab_folder import LabFolder


def test_two_first_runs_at_once_share_one_pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = LabFolder(tmp_path / ".lab")
    generate = PrivateKey.generate
    found: list[LabKeys] = []
    second = threading.Thread(target=lambda: found.append(ensure_keys(lab)))

    def generate_while_another_starts() -> PrivateKey:
        if not second.ident:
            second.start()
            # Without a lock the second one is through long before this ends; with it, it is still waiting.
            second.join(0.5)
        return generate()

    monkeypatch.setattr(PrivateKey, "generate", staticmethod(generate_while_another_starts))
    first = ensure_keys(lab)
    second.join(30)
    assert found[0].signing.public.pem == first.signing.public.pem
    assert found[0].log.verifier("x") == first.log.verifier("x")
    assert (first.made_now, found[0].made_now) == (True, False)
    assert PublicKey.load(lab.public_key).pem == PrivateKey.load(lab.signing_key).public.pem


def test_a_key_that_is_not_there_makes_nothing(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such file"):
        ensure_keys(LabFolder(tmp_path / ".lab"), key_path=tmp_path / "nope.key")
    assert not list(tmp_path.iterdir())
