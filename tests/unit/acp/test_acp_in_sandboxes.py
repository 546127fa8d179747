"""The ACP harness with real confinement: the agent inside, the bridge outside, on bubblewrap and on docker."""

from __future__ import annotations

import importlib.util
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from labaudit.engines.protocol import Engine, Limits, ReadOnlyMount, SandboxLabels, SandboxSpec
from labaudit.engines.select import select_engine
from labaudit.harnesses.acp.harness import AcpHarness
from tests.unit.acp.official import has_schema, problems
from tests.unit.acp.talk import HERE, IDS, run_in, trial_session

ENGINES = [
    pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
    pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.xdist_group("docker")]),
]


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    with select_engine(request.param)[0] as chosen:
        yield chosen


def test_a_turn_runs_over_attached_streams(engine: Engine, tmp_path: Path) -> None:
    end, _ = run_in(engine, "tools", tmp_path)
    assert end.trial_output is not None
    assert end.trial_output["outcome"] == "success", end.trial_output
    assert end.trial_output["answer"] == "done"
    assert end.result.exit_code == 0
    assert end.result.network.mode_effective == "none"


def test_a_hundred_megabytes_of_stderr_do_not_stall_the_turn(engine: Engine, tmp_path: Path) -> None:
    end, _ = run_in(engine, "stderr_flood", tmp_path, timeout_s=60.0)
    assert end.trial_output is not None
    assert end.trial_output["answer"] == "after the flood"
    assert end.result.stderr.total == 1600 * 65536
    assert end.result.stderr.truncated


def test_an_agent_that_ignores_everything_is_ended_by_the_engine(engine: Engine, tmp_path: Path) -> None:
    began = time.monotonic()
    end, _ = run_in(engine, "ignore_cancel", tmp_path, timeout_s=1.5)
    assert time.monotonic() - began < 90
    assert end.result.timed_out
    assert end.trial_output is not None
    assert end.trial_output["error"]["error_type"] == "acp:timeout"


def test_an_agent_that_dies_in_mid_turn_is_a_labelled_error(engine: Engine, tmp_path: Path) -> None:
    end, _ = run_in(engine, "exits", tmp_path)
    assert end.trial_output is not None
    assert end.trial_output["error"]["error_type"] == "acp:exited"
    assert end.result.exit_code == 3


def test_forged_evidence_in_out_changes_nothing(engine: Engine, tmp_path: Path) -> None:
    end, _ = run_in(engine, "fake_files", tmp_path)
    assert end.trial_output is not None
    assert end.trial_output["answer"] == "forged"
    assert b"forged" not in end.written["harness_events.jsonl"].read_bytes()


@has_schema
def test_a_turn_with_an_agent_of_the_official_sdk_conforms(engine: Engine, tmp_path: Path) -> None:
    spec = importlib.util.find_spec("acp")
    assert spec is not None
    assert spec.origin is not None
    packages = Path(spec.origin).parents[1]
    folder = tmp_path / "agent"
    folder.mkdir()
    shutil.copy(HERE / "agents" / "sdk_echo.py", folder / "agent.py")
    sandbox = engine.open(
        SandboxSpec(
            image=engine.resolve_image(None).id,
            command=("python3", "/harness/agent.py"),
            labels=SandboxLabels(str(IDS["run_id"]), str(IDS["trial_id"])),
            env={"PYTHONPATH": "/packages"},
            harness=folder,
            read_only=(ReadOnlyMount(packages, "/packages", "packages"),),
            limits=Limits(memory_mb=512),
            attach=True,
        )
    )
    try:
        session, _ = trial_session(sandbox, tmp_path, timeout_s=60.0)
        end = AcpHarness().run(session)
    finally:
        sandbox.remove()
    assert end.trial_output is not None
    assert end.trial_output["outcome"] == "success", (end.trial_output, end.result.stderr.rendered()[-2000:])
    assert end.trial_output["answer"] == "hello"
    assert end.trial_output["ext"]["acp"]["agent"] == {"name": "sdk-echo", "version": "1.0.0"}
    assert problems(end.written["acp_transcript.jsonl"]) == ([], 7)
