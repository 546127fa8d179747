"""A folder of packets to one report: the N1-N7 matrix, the six answers, refused packets, and stored events compared.

Packets are `*.json` files with one packet and `*.jsonl` files with one per line; `a2a_events.jsonl` holds events that
were made from the `a2a_packets.jsonl` beside it, and both must still agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson

from labaudit.contracts.a2a.errors import AdapterError
from labaudit.contracts.a2a.evidence import events_from_packets
from labaudit.contracts.a2a.matrix import CaseResult, Observed, observe_packet, run_matrix
from labaudit.contracts.a2a.review import Answer, review_answers
from labaudit.core.canonical import canonical_bytes
from labaudit.errors import BadInput
from labaudit.store import atomic

PACKETS_FILE = "a2a_packets.jsonl"
EVENTS_FILE = "a2a_events.jsonl"


@dataclass(frozen=True, slots=True)
class FolderReport:
    """What a folder of packets showed."""

    packets: int
    matrix: list[CaseResult]
    answers: list[Answer]
    refused: list[dict[str, object]]
    changed_events: list[str]

    @property
    def holds(self) -> bool:
        """True when no case broke, no answer is no, and stored events are what their packets give."""
        return not (
            self.changed_events
            or any(result.status == "broken" for result in self.matrix)
            or any(answer.answer == "no" for answer in self.answers)
        )

    @property
    def tried(self) -> bool:
        """True when at least one packet exercised a case: nothing that was never tried can hold."""
        return any(result.held or result.broken for result in self.matrix)

    def as_json(self) -> dict[str, object]:
        """The report as a JSON object."""
        return {
            "packets": self.packets,
            "holds": self.holds,
            "matrix": [result.as_json() for result in self.matrix],
            "answers": [answer.as_json() for answer in self.answers],
            "refused": self.refused,
            "changed_events": self.changed_events,
        }


def check_folder(folder: Path) -> FolderReport:
    """The report on every packet at or below `folder`; BadInput when there is none."""
    if not folder.is_dir():
        raise BadInput("there is no such folder", where=str(folder), hint="give a folder with packets in it")
    return check_packets(_packets(folder), changed_events=_changed_events(folder), where=str(folder))


def check_packets(
    packets: Iterator[tuple[str, bytes]], *, changed_events: list[str] | None = None, where: str = ""
) -> FolderReport:
    """The same report on named packets from anywhere."""
    observed: list[Observed] = []
    refused: list[dict[str, object]] = []
    for name, data in packets:
        seen = observe_packet(name, data)
        if isinstance(seen, AdapterError):
            refused.append({"packet": name, **seen.as_error_object()})
        else:
            observed.append(seen)
    if not observed and not refused:
        raise BadInput("there are no packets", where=where, hint="packets are *.json files, or lines of *.jsonl files")
    matrix, answers = run_matrix(observed), review_answers(observed)
    return FolderReport(len(observed) + len(refused), matrix, answers, refused, changed_events or [])


def _packets(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_file() or path.name == EVENTS_FILE:
            continue
        name = path.relative_to(folder).as_posix()
        if path.suffix == ".json":
            yield name, atomic.read_bytes(path)
        elif path.suffix == ".jsonl":
            for number, line in enumerate(atomic.read_bytes(path).split(b"\n"), start=1):
                if line.strip():
                    yield f"{name}:{number}", line


def _changed_events(folder: Path) -> list[str]:
    changed = []
    for path in sorted(folder.rglob(EVENTS_FILE)):
        packets = path.with_name(PACKETS_FILE)
        lines = atomic.read_bytes(packets).split(b"\n") if packets.is_file() else []
        wanted = [_without_reference(line) for line in events_from_packets(lines).lines]
        stored = [_without_reference(line) for line in atomic.read_bytes(path).split(b"\n") if line]
        if stored != wanted:
            changed.append(path.relative_to(folder).as_posix())
    return changed


def _without_reference(line: bytes) -> bytes:
    """The line without the place where the runner keeps the raw bytes; their digest stays."""
    try:
        event = orjson.loads(line)
        if isinstance(event, dict) and isinstance(event.get("raw"), dict):
            event["raw"].pop("artifact_ref", None)
        return canonical_bytes(event)
    except (orjson.JSONDecodeError, BadInput):
        return line
