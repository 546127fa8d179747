"""Packets that the agents of a trial sent each other, kept as they are, to the events that they stand for."""

from __future__ import annotations

from pathlib import Path

from labaudit.contracts.a2a.evidence import events_from_packets
from labaudit.errors import BadInput
from labaudit.evidence.inside_out import open_regular
from labaudit.evidence.recorder import Recorder
from labaudit.store import atomic
from labaudit.store.run_folder import TrialFolder

PACKETS = "a2a_packets.jsonl"
MAX_BYTES = 16 << 20


def convert_packets(collected: Path, trial: TrialFolder, recorder: Recorder) -> None:
    """Writes `a2a_packets.jsonl` (redacted) and `a2a_events.jsonl` where the harness left packets."""
    try:
        stream = open_regular(collected, PACKETS)
        if stream is None:
            return
        with stream:
            data = stream.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise BadInput(f"is larger than {MAX_BYTES} bytes", where=PACKETS)
    except BadInput as error:
        recorder.record("evidence.refused", {"problem": f"{PACKETS}: {error.what}"})
        return
    kept = recorder.redactor.apply(data).data
    evidence = events_from_packets(kept.splitlines(keepends=True))
    atomic.write_bytes(trial.a2a_packets, kept, durable=False)
    atomic.write_bytes(trial.a2a_events, evidence.file_bytes(), durable=False)
    recorder.record("a2a.converted", evidence.summary())
