"""Contract results to `contracts.html`: the A2A matrix with what each flag may and must not imply, records by rule."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from labaudit.contracts.a2a.folder_check import FolderReport, check_packets
from labaudit.contracts.a2a.matrix import run_matrix
from labaudit.contracts.a2a.meaning import GUARDRAIL, MEANINGS
from labaudit.contracts.a2a.review import review_answers
from labaudit.contracts.record_check import RecordCheck
from labaudit.contracts.rules.book import BOOK
from labaudit.errors import LabauditError
from labaudit.site.reading.trial_reading import TrialReading

Json = dict[str, Any]
PACKETS = 5000
EXAMPLES = 8


@dataclass
class ContractTally:
    """Counts findings by rule, trial by trial, and keeps packets up to a limit."""

    records: Counter[str] = field(default_factory=Counter)
    broken: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[Json]] = field(default_factory=dict)
    packets: list[tuple[str, bytes]] = field(default_factory=list)
    packet_count: int = 0

    def add(self, example: Json, reading: TrialReading) -> None:
        """Takes in one trial's records and packets."""
        if (reading.record or {}).get("status") == "completed":
            self.records["trial"] += 1
            if reading.run_record is None:
                self._note(example, "K2", "the trial has no run record")
        check = RecordCheck(keep=EXAMPLES)
        if reading.run_record is not None:
            check.add(reading.run_record, "run_record.json", kind="run")
        for score in reading.scores:
            check.add(score, "score_records.jsonl", kind="score")
        report = check.finish()
        self.records.update(report.records)
        for _, finding in report.findings:
            self._note(example, finding.rule, finding.message)
        self._add_packets(example, reading.a2a_packets or b"")

    def _add_packets(self, example: Json, packets: bytes) -> None:
        for number, line in enumerate(packets.split(b"\n"), start=1):
            if line.strip():
                self.packet_count += 1
                if len(self.packets) < PACKETS:
                    self.packets.append((f"{example['trial_id']}:{number}", line))

    def _note(self, example: Json, rule: str, message: str) -> None:
        self.broken[rule] += 1
        shown = self.examples.setdefault(rule, [])
        if len(shown) < EXAMPLES:
            shown.append({**example, "message": message})

    def context(self) -> Json:
        """What the template prints."""
        return {
            "guardrail": GUARDRAIL,
            "meanings": MEANINGS,
            "a2a": self._a2a(),
            "packet_count": self.packet_count,
            "packets_checked": len(self.packets),
            "records": self.records,
            "rules": [
                {
                    "id": row.id,
                    "about": row.about,
                    "severity": row.severity,
                    "sentence": row.sentence,
                    "broken": self.broken[row.id],
                    "asked": self._asked(row.id, row.about),
                    "examples": self.examples.get(row.id, []),
                }
                for row in BOOK
            ],
        }

    def _asked(self, rule: str, about: str) -> int:
        """How many records of this run a rule was asked of; C5 needs evaluators' declarations, which a run has not."""
        if rule == "K2":
            return self.records["trial"]
        if about in ("run", "trace"):
            return self.records["run"]
        if about == "score":
            return 0 if rule == "C5" else self.records["score"]
        return self.records["run"] + self.records["score"] if about == "date" else 0

    def _a2a(self) -> Json:
        """The matrix and the six questions; without packets each of them says that there is no evidence."""
        try:
            return check_packets(iter(self.packets)).as_json()
        except LabauditError:
            matrix, answers = run_matrix([]), review_answers([])
            return FolderReport(0, matrix, answers, [], []).as_json()
