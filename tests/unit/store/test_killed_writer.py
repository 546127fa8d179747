"""`kill -9` while events are appended: the log always recovers to a valid prefix and goes on."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

from labaudit.core.digest import Digest
from labaudit.store.event_log import EventLog, LogIdentity, check_chain

IDENTITY = LogIdentity("run-1", "base.t.r0-00000000", "base", "t", 0, 1, Digest.of(b"spec"))


def _append_for_ever(path: Path) -> None:
    log, _ = EventLog.recover(path, IDENTITY)
    number = 0
    while True:
        number += 1
        log.append("step.end", step_index=number, durable=number % 3 == 0)
        log.flush(durable=False)


def _kill_while_writing(path: Path, rng: random.Random) -> None:
    child = os.fork()
    if child == 0:
        try:
            _append_for_ever(path)
        finally:
            os._exit(1)
    time.sleep(rng.uniform(0.001, 0.03))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if rng.random() < 0.3 and path.exists() and path.stat().st_size:
        # A power cut may also lose the end of the last write.
        os.truncate(path, path.stat().st_size - rng.randrange(min(400, path.stat().st_size)))


def _run(path: Path, times: int) -> None:
    rng = random.Random(20261118)
    before = 0
    for _ in range(times):
        _kill_while_writing(path, rng)
        log, _ = EventLog.recover(path, IDENTITY)
        log.append("runner.recovered", durable=True)
        count = log.count
        log.close()
        assert check_chain(path, IDENTITY).count == count
        if path.stat().st_size > 4_000_000:
            path.unlink()
        before = max(before, count)
    assert before > 10


def test_ten_kills_leave_a_valid_log(tmp_path: Path) -> None:
    _run(tmp_path / "events.jsonl", 10)


@pytest.mark.acceptance
def test_two_hundred_kills_leave_a_valid_log(tmp_path: Path) -> None:
    _run(tmp_path / "events.jsonl", 200)
