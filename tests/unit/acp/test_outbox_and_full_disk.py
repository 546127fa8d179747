"""Lines to the agent: in order whenever it reads them, and never past the end of the record."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest

from labaudit.engines.process_engine import ProcessEngine
from labaudit.errors import EnvironmentLacks
from labaudit.harnesses.acp.client.client import ACPClient
from labaudit.harnesses.acp.client.failures import AgentFailure
from labaudit.harnesses.acp.client.link import ProcessLink
from labaudit.harnesses.acp.client.outbox import Outbox
from labaudit.harnesses.acp.client.text_agent import TextAgent
from labaudit.harnesses.acp.harness import TRANSCRIPT, AcpHarness
from labaudit.harnesses.acp.wire.transcript import Transcript
from tests.unit.acp.talk import AGENT, open_sandbox, trial_session

FULL = Path("/dev/full")
ECHO = [sys.executable, str(AGENT), "echo"]


def nobody() -> None:
    raise AssertionError("nobody was to be called")


def test_lines_keep_their_order_when_the_agent_reads_late(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb", buffering=0) as stream:
        transcript = Transcript(tmp_path / "transcript.jsonl")
        box = Outbox(stream, transcript, nobody)
        lines = [b"%d %s\n" % (n, b"x" * (300_000 if n % 5 == 2 else 10)) for n in range(50)]
        for line in lines:
            box.put(line)  # would never return if it waited for the full pipe
        taken = bytearray()

        def read() -> None:
            while chunk := os.read(reading, 1 << 16):
                taken.extend(chunk)

        reader = threading.Thread(target=read)
        reader.start()
        box.close(30)
        reader.join(30)
    os.close(reading)
    assert bytes(taken) == b"".join(lines)
    transcript.close()
    assert transcript.counts["out"] == 50


def test_a_full_disk_ends_the_conversation_at_once_and_nothing_is_said_off_the_record() -> None:
    client = ACPClient(".", ECHO, transcript=Transcript(FULL), request_timeout_s=600.0)
    client.start()
    with pytest.raises(AgentFailure, match="cannot be recorded: no space is left on the disk") as raised:
        client.initialize()
    assert raised.value.kind == "unrecorded"
    client.close()
    with pytest.raises(EnvironmentLacks, match="no space"):
        client.transcript.check()


def test_a_disk_that_fills_up_while_the_agent_talks_ends_the_conversation(monkeypatch: pytest.MonkeyPatch) -> None:
    transcript = Transcript(FULL)
    monkeypatch.setattr(transcript, "sent", lambda line: 0)
    client = ACPClient(".", ECHO, transcript=transcript, request_timeout_s=600.0)
    client.start()
    with pytest.raises(AgentFailure) as raised:
        client.initialize()
    assert raised.value.kind == "unrecorded"
    client.close()


def test_a_text_agent_is_not_listened_to_off_the_record() -> None:
    link = ProcessLink([sys.executable, "-c", "input()"])
    agent = TextAgent(link, transcript=Transcript(FULL))
    with pytest.raises(EnvironmentLacks, match="no space"):
        agent.ask("hello", 600.0)
    agent.close()


def test_half_a_line_on_the_disk_counts_as_none(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path / "transcript.jsonl")

    class Short:
        closed = False

        def write(self, data: bytes) -> int:
            return len(data) - 1

    transcript._file = Short()  # type: ignore[assignment]  # a disk that fills up in the middle cannot be had at will
    transcript.sent(b"{}\n")
    with pytest.raises(EnvironmentLacks, match="no space"):
        transcript.check()


def test_a_trial_that_cannot_be_recorded_is_lost_and_no_failure_of_its_agent(tmp_path: Path) -> None:
    with ProcessEngine() as engine:
        sandbox = open_sandbox(engine, "echo", tmp_path)
        try:
            session, _ = trial_session(sandbox, tmp_path, timeout_s=600.0)
            (session.staging / TRANSCRIPT).symlink_to(FULL)
            with pytest.raises(EnvironmentLacks, match="no space is left"):
                AcpHarness().run(session)
        finally:
            sandbox.remove()
