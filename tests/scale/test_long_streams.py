"""A long hook stream costs the analysis memory for what it compares, not for all that the harness wrote."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

from labaudit.analysis.explain.trial_evidence import read_evidence
from labaudit.analysis.trials.rows import TrialRow
from labaudit.store.run_folder import TrialFolder

EVENTS = 20_000
TYPES = ("agent_step_start", "model_call_end", "tool_call_end", "control_ack", "agent_step_end")


def _trial(folder: Path) -> tuple[TrialFolder, TrialRow]:
    trial = TrialFolder(folder)
    folder.mkdir()
    with trial.harness_events.open("w") as stream:
        for number in range(EVENTS):
            event = {
                "event_type": TYPES[number % 5],
                "seq": number,
                "step_index": number // 5,
                "outcome": {"status": "ok"},
                "tool": {"name": "search"},
                "usage": {"tokens_in": 3, "tokens_out": 2},
                "prompt": "words " * 80,
            }
            stream.write(json.dumps(event) + "\n")
    row = TrialRow(
        index=0, trial_id="t1", variant_id="base", task_id="task", repl_idx=0, status="included", outcome="success",
        attempts=1, metrics={}, missing={},
    )  # fmt: skip
    return trial, row


def test_memory_of_a_long_hook_stream_is_a_fraction_of_its_bytes(tmp_path: Path) -> None:
    trial, row = _trial(tmp_path / "t1")
    size = trial.harness_events.stat().st_size
    tracemalloc.start()
    evidence = read_evidence(trial, row)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert evidence.hooks.usable
    assert evidence.features["tool_calls"] == EVENTS // 5
    assert evidence.features["tokens_in"] == 3 * 2 * EVENTS // 5
    assert peak < size / 2, f"{peak} bytes for a stream of {size}"


def test_a_line_out_of_order_still_makes_the_whole_stream_unusable(tmp_path: Path) -> None:
    trial, row = _trial(tmp_path / "t1")
    with trial.harness_events.open("a") as stream:
        stream.write('{"event_type":"control_ack","seq":3}\n')
    evidence = read_evidence(trial, row)
    assert not evidence.hooks.usable
    assert evidence.hooks.events == ()
    assert "seq" in str(evidence.hooks.problem)
