"""Control groups on the kernel's own hierarchies: version 1 with its controllers, version 2 wherever it is mounted."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from labaudit.engines.bubblewrap.engine import BubblewrapEngine
from labaudit.engines.host import cgroups
from labaudit.engines.host.cgroups import ControlGroup, create_group, leftover_groups
from labaudit.engines.host.ownership import this_process
from labaudit.engines.observed import NotObserved
from labaudit.engines.spec import Limits
from tests.engine_contract import opened, until

pytestmark = [
    pytest.mark.bubblewrap,
    pytest.mark.skipif(os.geteuid() != 0, reason="control groups need root or a delegated folder"),
]
COUNTER = "i=0; while :; do i=$((i+1)); echo $i > {}; sleep 0.01; done"


def version_2_root() -> Path | None:
    for root in (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified")):
        if (root / "cgroup.controllers").exists():
            return root
    return None


@pytest.fixture(params=[1, 2])
def group(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[ControlGroup]:
    if request.param == 1 and not Path("/sys/fs/cgroup/memory").is_dir():
        pytest.skip("no version 1 hierarchy here")
    if request.param == 2:
        root = version_2_root()
        if root is None:
            pytest.skip("no version 2 hierarchy here")
        monkeypatch.setattr(cgroups, "ROOT", root)
    made = create_group(f"test-{os.getpid()}", Limits(memory_mb=64, pids=20, cpus=0.5))
    assert isinstance(made, ControlGroup), made
    assert made.version == request.param
    yield made
    made.remove()
    assert not any(folder.exists() for folder in made.folders.values())


def joined(group: ControlGroup, path: Path) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(["sh", "-c", COUNTER.format(path)])
    for join in group.joins:
        Path(join).write_text(str(process.pid))
    return process


def test_limits_are_read_back_from_the_kernel_or_the_problem_is_named(group: ControlGroup) -> None:
    found = group.limits()
    wanted = {"memory_mb": (found.memory_bytes, 64 << 20), "pids": (found.pids, 20), "cpus": (found.cpus, 0.5)}
    for name, (value, asked) in wanted.items():
        if name in group.problems:
            assert isinstance(value, NotObserved)
            assert "no" in group.problems[name]
        else:
            assert value == asked
    if group.version == 1:
        assert group.problems == {}
        assert group.oom_kills() == 0


def test_a_frozen_group_stands_still_and_goes_on(group: ControlGroup, tmp_path: Path) -> None:
    ticks = tmp_path / "ticks"
    process = joined(group, ticks)
    try:
        assert process.pid in group.processes()
        assert until(lambda: ticks.exists() and ticks.read_text() not in ("", "1\n"))
        assert group.freeze(True)
        before = ticks.read_text()
        time.sleep(0.2)
        assert ticks.read_text() == before
        assert group.freeze(False)
        assert until(lambda: ticks.read_text() not in ("", before))
    finally:
        group.freeze(False)
        process.kill()
        process.wait()
    assert until(lambda: process.pid not in group.processes())


def test_a_sandbox_whose_freezer_is_too_slow_is_stopped_by_signals_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    real = ControlGroup.freeze
    # a kernel that does not get a group to rest within its time cannot be had at will
    monkeypatch.setattr(ControlGroup, "freeze", lambda group, frozen: not frozen and real(group, frozen))
    with BubblewrapEngine.detect() as engine, opened(engine, "sh", "-c", COUNTER.format("/out/ticks")) as sandbox:
        sandbox.start()
        ticks = Path(sandbox.host.out, "ticks")
        assert until(lambda: ticks.exists() and ticks.read_text() not in ("", "1\n"))
        sandbox.pause()
        before = ticks.read_text()
        time.sleep(0.2)
        assert ticks.read_text() == before
        sandbox.unpause()
        assert until(lambda: ticks.read_text() not in ("", before))
        sandbox.kill("enough")


def test_only_groups_of_dead_owners_are_leftovers(group: ControlGroup) -> None:
    mine = next(iter(group.folders.values()))
    assert str(this_process()) in mine.name
    dead = mine.with_name(mine.name.rsplit(".", 1)[0] + ".1")  # the same pid, started at another time

    def names() -> set[str]:
        dead.mkdir(exist_ok=True)  # a runner of another test may have cleared it away meanwhile
        return {folder.name for found in leftover_groups() for folder in found.folders.values()}

    try:
        assert until(lambda: dead.name in names())
        assert mine.name not in names()
    finally:
        with suppress(FileNotFoundError):
            dead.rmdir()
