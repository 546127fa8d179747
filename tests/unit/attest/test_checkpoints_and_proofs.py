"""Checkpoints and single-trial proofs: C2SP text forms, exact both ways."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labaudit.attest.checkpoint import parse_checkpoint, sign_checkpoint
from labaudit.attest.log_key import LogKey
from labaudit.attest.proofs import parse_proof
from labaudit.attest.publication_log import parse_entries, render_log
from labaudit.core.canonical import canonical_bytes
from labaudit.core.digest import sha256_hex
from labaudit.errors import BadInput
from tests.make_run import MadeRun

KEY = LogKey.generate()
HEAD = sign_checkpoint("agent-lab.local/runs/r1", 6, b"\x07" * 32, KEY)


def test_a_checkpoint_reads_back_and_its_signature_holds() -> None:
    found = parse_checkpoint(HEAD.render(), where="x")
    assert found == HEAD
    assert found.signed_by(KEY.verifier("agent-lab.local/runs/r1"))
    assert not found.signed_by(KEY.verifier("agent-lab.local/runs/r2"))
    assert not found.signed_by(LogKey.generate().verifier("agent-lab.local/runs/r1"))


def test_the_signed_text_is_three_lines_and_a_blank() -> None:
    lines = HEAD.render().decode().split("\n")
    assert lines[0] == "agent-lab.local/runs/r1"
    assert lines[1] == "6"
    assert lines[3] == ""
    assert lines[4].startswith("— agent-lab.local/runs/r1 ")
    assert lines[5:] == [""]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"\n6\n", b"\n06\n"),
        (b"\n6\n", b"\n-6\n"),
        (b"\n6\n", b"\n6\nextension\n"),
        (b"\n\n", b"\n"),
        (b"\xe2\x80\x94", b"-"),
        (b"BwcH", b"BwcG"),
    ],
)
def test_a_changed_checkpoint_is_malformed_or_unsigned(old: bytes, new: bytes) -> None:
    data = HEAD.render().replace(old, new, 1)
    try:
        found = parse_checkpoint(data, where="x")
    except BadInput:
        return
    assert not found.signed_by(KEY.verifier("agent-lab.local/runs/r1"))


@given(st.binary(max_size=300))
def test_any_bytes_are_a_checkpoint_or_bad_input(data: bytes) -> None:
    with contextlib.suppress(BadInput):
        assert parse_checkpoint(data, where="x").render() == data


def test_every_proof_of_a_run_holds_and_names_its_record(made: MadeRun) -> None:
    for path in (made.run.attestations / "proofs").iterdir():
        proof = parse_proof(path.read_bytes(), where=path.name)
        trial = path.name.removesuffix(".tlog-proof")
        assert proof.holds
        assert proof.record == made.run.trial(trial).trial_record.read_bytes()
        assert proof.run_bundle == made.run.bundle("run").read_bytes()
        assert canonical_bytes(proof.checkpoint.size) == b"6"


@given(st.lists(st.binary(max_size=40), max_size=520))
def test_the_entries_of_a_log_read_back_from_its_tiles(entries: list[bytes]) -> None:
    files = render_log(entries)
    back = []
    for path in sorted(path for path in files if path.startswith("tile/entries/")):
        back += parse_entries(files[path], where=path)
    assert back == entries
    if entries:
        assert sum(len(data) for path, data in files.items() if path.startswith("tile/0/")) == 32 * len(entries)


def test_a_cut_entry_tile_is_refused() -> None:
    for data in (b"\x00", b"\x00\x05abc"):
        with pytest.raises(BadInput):
            list(parse_entries(data, where=sha256_hex(data)))
