"""Nothing of a bubblewrap trial is left: after many of them, after Ctrl-C, and after a runner was killed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from labaudit.engines.bubblewrap.engine import BubblewrapEngine
from labaudit.engines.protocol import Engine, NetworkSpec
from tests.engine_contract import opened, run, until
from tests.leftovers import NOTHING, end_runner, groups_of, left_over, own_runtime_folder, start_runner

pytestmark = pytest.mark.bubblewrap


@pytest.fixture
def runtime() -> Iterator[Path]:
    with own_runtime_folder() as folder:
        yield folder


@pytest.fixture
def engine(runtime: Path) -> Iterator[Engine]:
    with BubblewrapEngine.detect() as made:
        yield made


def children_of(pid: int) -> set[str]:
    found, todo = set(), [str(pid)]
    while todo:
        for path in Path(f"/proc/{todo.pop()}/task").glob("*/children"):
            with suppress(OSError):  # a thread that has just ended
                for child in path.read_text().split():
                    found.add(child)
                    todo.append(child)
    return found


@pytest.mark.parametrize("pooling", [pytest.param("single", marks=pytest.mark.acceptance), "pooled"])
def test_a_killed_runner_takes_its_processes_along_and_the_rest_is_reaped(
    engine: Engine, runtime: Path, pooling: str
) -> None:
    runner, folder = start_runner("bubblewrap", pooling)
    family = children_of(runner.pid)
    assert len(family) >= 3  # bubblewrap, the harness, the proxy
    engine.reap()
    assert folder.exists()  # its owner lives
    if os.geteuid() == 0:
        assert groups_of([folder.name]) != set()
    end_runner(runner, signal.SIGKILL)
    assert until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in family), 30)
    assert folder.exists()
    gone = engine.reap()
    assert folder.name in {item.name for item in gone if item.kind == "folder"}
    assert groups_of([folder.name]) == set()
    assert left_over(runtime) == NOTHING


def test_an_interrupted_runner_leaves_nothing(engine: Engine, runtime: Path) -> None:
    runner, folder = start_runner("bubblewrap", "pooled")
    end_runner(runner, signal.SIGINT)
    assert left_over(runtime) == NOTHING
    assert groups_of([folder.name]) == set()


def test_open_descriptors_and_threads_do_not_grow(engine: Engine) -> None:
    def held() -> tuple[int, int]:
        return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))

    for _ in range(3):
        run(engine, "true")
    time.sleep(0.5)
    before = held()
    for _ in range(10):
        run(engine, "true")
    assert until(lambda: held()[0] <= before[0] and held()[1] <= before[1], 30), (before, held())


@pytest.mark.acceptance
def test_two_hundred_trials_leave_nothing(runtime: Path) -> None:
    ids = []
    with BubblewrapEngine.detect() as engine:
        for number in range(200):
            network = NetworkSpec("allowlist_enforced", ("a.example",), pooled=True) if number % 2 else NetworkSpec()
            with opened(engine, "true", network=network) as sandbox:
                ids.append(Path(sandbox.host.out).parent.name)
                sandbox.start()
                assert sandbox.wait().exit_code == 0
    assert left_over(runtime) == NOTHING
    assert groups_of(ids) == set()
