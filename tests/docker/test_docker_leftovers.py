"""Nothing of a docker trial is left: after many of them, after Ctrl-C, and after a runner was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from labaudit.engines.docker.engine import DockerEngine
from labaudit.engines.host.ownership import OWNER
from labaudit.engines.protocol import NetworkSpec
from tests.engine_contract import run, until
from tests.leftovers import NOTHING, REPOSITORY, end_runner, left_over, own_runtime_folder, start_runner

pytestmark = [pytest.mark.docker, pytest.mark.xdist_group("docker")]


@pytest.fixture
def runtime() -> Iterator[Path]:
    with own_runtime_folder() as folder:
        yield folder


@pytest.fixture
def engine(runtime: Path) -> Iterator[DockerEngine]:
    with DockerEngine.connect() as made:
        yield made


def containers(engine: DockerEngine) -> set[str]:
    """Containers of ours whose surfaces or sockets lie in this test's runtime folder."""
    found = set()
    for made in engine.client.containers(all=True, filters={"label": OWNER}):
        if any(os.environ["LABAUDIT_RUNTIME_DIR"] in str(mount.get("Source")) for mount in made["Mounts"]):
            found.add(made["Id"])
    return found


@pytest.mark.parametrize("pooling", [pytest.param("single", marks=pytest.mark.acceptance), "pooled"])
def test_a_killed_runner_is_cleared_away_by_the_next_one(engine: DockerEngine, pooling: str) -> None:
    runner, folder = start_runner("docker", pooling)
    mine = containers(engine)
    assert len(mine) == 3  # the trial, its holder and its proxy
    engine.reap()
    assert containers(engine) == mine  # their owner lives
    end_runner(runner, signal.SIGKILL)
    assert containers(engine) == mine
    gone = [item for item in engine.reap() if item.kind != "container" or item.name in {name[:12] for name in mine}]
    assert containers(engine) == set()
    roles = sorted(item.labels["role"] for item in gone if item.kind == "container")
    assert roles == ["holder", "proxy", "trial"]
    assert {item.labels["trial"] for item in gone if item.kind == "container"} == {"trial-test"}
    assert folder.name in {item.name for item in gone if item.kind == "folder"}
    assert not folder.exists()


def test_the_network_of_a_self_test_that_was_killed_is_cleared_away(engine: DockerEngine) -> None:
    source = (
        "import time\nfrom labaudit.engines.docker.engine import DockerEngine\n"
        "from labaudit.engines.docker.canaries import DockerCanaries\n"
        "with DockerEngine.connect() as engine, DockerCanaries(engine) as made:\n"
        "    print(made.network, flush=True); time.sleep(300)"
    )
    runner = subprocess.Popen([sys.executable, "-c", source], cwd=REPOSITORY, stdout=subprocess.PIPE)
    assert runner.stdout is not None
    name = runner.stdout.readline().decode().strip()
    engine.reap()
    assert len(engine.client.networks(names=[name])) == 1  # its owner lives
    runner.kill()
    runner.wait(60)
    runner.stdout.close()
    assert name in {item.name for item in engine.reap() if item.kind == "network"}
    assert engine.client.networks(names=[name]) == []


def test_an_interrupted_runner_leaves_nothing(engine: DockerEngine, runtime: Path) -> None:
    runner, _ = start_runner("docker", "pooled")
    assert len(containers(engine)) == 3
    end_runner(runner, signal.SIGINT)
    assert until(lambda: containers(engine) == set(), 10)
    assert left_over(runtime) == NOTHING


@pytest.mark.acceptance
def test_two_hundred_trials_leave_nothing(runtime: Path, engine: DockerEngine) -> None:
    with DockerEngine.connect() as other:
        for number in range(200):
            network = NetworkSpec("allowlist_enforced", ("a.example",), pooled=True) if number % 2 else NetworkSpec()
            assert run(other, "true", network=network).exit_code == 0
    assert containers(engine) == set()
    assert left_over(runtime) == NOTHING
