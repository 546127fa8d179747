"""A recorded session: its record is whole and signed, or the file that is not is named."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from labaudit import __version__
from labaudit.attest.keys import PrivateKey
from labaudit.attest.session_seal import seal_session
from labaudit.attest.signers import KeySigner
from labaudit.core.canonical import canonical_bytes
from labaudit.core.clock import FixedClock
from labaudit.core.digest import Digest
from labaudit.store.event_log import EventLog
from labaudit.store.session_folder import SessionFolder, log_identity
from labaudit.verify.request import Anchors
from labaudit.verify.verdict import Report
from tests.make_run import MadeRun
from tests.unit.verify.conftest import codes

START = datetime(2026, 11, 18, 9, 30, tzinfo=UTC)


def record(path: Path, key: PrivateKey | None) -> SessionFolder:
    folder, clock = SessionFolder(path), FixedClock(START, timedelta(seconds=1))
    session = canonical_bytes(
        {
            "schema_version": "session_v1",
            "session_id": "session-1",
            "kind": "chat",
            "created_at": "2026-11-18T09:30:00.000000Z",
            "tool": {"name": "labaudit", "version": __version__},
            "protocol": "acp",
            "dialect": "v1",
            "command": ["agent"],
            "permissions": "ask",
            "withheld": [],
        }
    )
    path.mkdir(parents=True)
    folder.session.write_bytes(session)
    folder.transcript.write_bytes(b'{"line":1}\n')
    log = EventLog(folder.events, log_identity("session-1", "chat", Digest.of(session)), clock=clock)
    log.append("session.started")
    log.append("session.message", payload_ref=folder.artifacts.put(b'{"text":"hello"}', "application/json"))
    log.seal(folder.events_head)
    seal_session(folder, KeySigner(key) if key else None, clock=clock)
    return folder


@pytest.fixture
def session(made: MadeRun, tmp_path: Path) -> SessionFolder:
    return record(tmp_path / "session-1", made.signing)


def test_a_signed_session_verifies(session: SessionFolder, check: Callable[..., Report]) -> None:
    report = check(session.path)
    assert (report.verdict, report.kind, report.provenance) == ("verified", "session", "signed")


def test_trust_decides_as_for_a_run(session: SessionFolder, tmp_path: Path, check: Callable[..., Report]) -> None:
    assert codes(check(session.path, anchors=Anchors())) == {"no_trust_anchor"}
    assert codes(check(session.path, anchors=Anchors(keys=(PrivateKey.generate().public,)))) == {"signer_not_trusted"}
    unsigned = record(tmp_path / "unsigned", None)
    assert codes(check(unsigned.path)) == {"unsigned"}
    assert check(unsigned.path, integrity_only=True).exit_code == 0


def test_any_flipped_byte_is_found_and_its_file_named(session: SessionFolder, check: Callable[..., Report]) -> None:
    files, chance = sorted(path for path in session.path.rglob("*") if path.is_file()), random.Random(3)
    for path in files:
        before = path.read_bytes()
        name = path.relative_to(session.path).as_posix()
        for _ in range(6):
            data = bytearray(before)
            data[chance.randrange(len(data))] ^= chance.randrange(1, 256)
            path.chmod(0o644)
            path.write_bytes(data)
            report = check(session.path)
            path.write_bytes(before)
            assert report.exit_code in (1, 2, 3), name
            named = any(finding.path.startswith(name) for finding in report.findings)
            assert named or name == "manifest.json", (name, report.findings)


def test_an_extra_file_a_link_and_a_missing_file_are_found(
    session: SessionFolder, check: Callable[..., Report]
) -> None:
    (session.path / "notes.txt").write_text("x")
    (session.path / "link").symlink_to("/etc/hostname")
    session.transcript.unlink()
    assert {"extra_file", "link_found", "file_missing"} <= codes(check(session.path))


def test_a_session_signed_over_a_broken_chain_fails(
    session: SessionFolder, made: MadeRun, check: Callable[..., Report]
) -> None:
    session.events.write_bytes(session.events.read_bytes().replace(b"session.message", b"session.massage"))
    session.manifest.unlink()
    session.bundle.unlink()
    seal_session(session, KeySigner(made.signing), clock=FixedClock(START))
    report = check(session.path)
    assert (report.exit_code, codes(report)) == (1, {"event_chain_broken"})


def test_a_session_moved_to_another_name_in_its_head_fails(
    session: SessionFolder, made: MadeRun, check: Callable[..., Report]
) -> None:
    value = json.loads(session.session.read_bytes())
    session.session.write_bytes(canonical_bytes(value | {"session_id": "session-2"}))
    session.manifest.unlink()
    session.bundle.unlink()
    seal_session(session, KeySigner(made.signing), clock=FixedClock(START))
    assert check(session.path).exit_code == 1
