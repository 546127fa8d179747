"""Agents that nobody here wrote, in sandboxes without a network: a whole turn with one, a start and cancel with two."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from labaudit.engines.protocol import Engine, Limits, LoopbackService, ReadOnlyMount, SandboxLabels, SandboxSpec
from labaudit.engines.select import select_engine
from labaudit.harnesses.acp.harness import AcpHarness
from labaudit.harnesses.protocol import HarnessEnd
from tests.unit.acp.official import has_schema, problems
from tests.unit.acp.stub_model import SENTENCE, StubModel
from tests.unit.acp.talk import IDS, trial_session

pytestmark = [pytest.mark.acceptance, pytest.mark.node]
PEERS = Path(__file__).parents[2] / "node" / "acp" / "node_modules"
PORT = 8099
Mounts = tuple[ReadOnlyMount, ...]
ENGINES = [
    pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
    pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.xdist_group("docker")]),
]


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    if not PEERS.is_dir():
        missing = "the ACP agents of tests/node/acp are not installed: run `scripts/setup acp`"
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
    with select_engine(request.param)[0] as chosen:
        yield chosen


@pytest.fixture
def model() -> Iterator[StubModel]:
    # A unix socket's path has little room, less than a test's own folder takes.
    with tempfile.TemporaryDirectory(prefix="la-") as folder:
        Path(folder).chmod(0o755)
        stub = StubModel(Path(folder) / "model")
        stub.socket = Path(folder) / "model"  # type: ignore[attr-defined]
        yield stub
        stub.close()


@pytest.fixture(scope="module")
def mounts() -> Iterator[Mounts]:
    """node with the libraries that a small image lacks, and the packages, where every user may read them."""
    node = Path(str(shutil.which("node"))).resolve()
    with tempfile.TemporaryDirectory(prefix="la-node-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        shutil.copy(node, folder / "node")
        for line in subprocess.run(["ldd", str(node)], capture_output=True, text=True, check=True).stdout.splitlines():
            words = line.split()
            if len(words) > 2 and words[0].startswith(("libstdc++", "libgcc_s", "libatomic")):
                shutil.copy(words[2], folder / words[0])
        yield ReadOnlyMount(folder, "/node", "node"), ReadOnlyMount(PEERS, "/peers/node_modules", "peers")


def run_agent(
    engine: Engine, mounts: Mounts, tmp_path: Path, script: str, env: dict[str, str], **options: Any
) -> HarnessEnd:
    words = script.split()
    sandbox = engine.open(
        SandboxSpec(
            image=engine.resolve_image(None).id,
            command=("/node/node", f"/peers/node_modules/{words[0]}", *words[1:]),
            labels=SandboxLabels(str(IDS["run_id"]), str(IDS["trial_id"])),
            env={"LD_LIBRARY_PATH": "/node", "HOME": "/state", "PATH": "/node:/usr/bin:/bin", **env},
            read_only=mounts,
            limits=Limits(memory_mb=2048, pids=512, tmp_mb=256, workspace_mb=256, state_mb=256),
            services=options.pop("services", ()),
            attach=True,
            grace_s=2.0,
        )
    )
    try:
        session, _ = trial_session(sandbox, tmp_path, **options)
        return AcpHarness().run(session)
    finally:
        sandbox.remove()


@has_schema
def test_a_whole_turn_with_gemini_cli_and_a_stub_model(
    engine: Engine, mounts: Mounts, tmp_path: Path, model: StubModel
) -> None:
    env = {"GEMINI_API_KEY": "stub-key", "GOOGLE_GEMINI_BASE_URL": f"http://127.0.0.1:{PORT}"}
    services = (LoopbackService("model", PORT, model.socket),)  # type: ignore[attr-defined]
    script = "@google/gemini-cli/bundle/gemini.js --acp"
    end = run_agent(engine, mounts, tmp_path, script, env, services=services, timeout_s=90.0)
    output = end.trial_output
    assert output is not None
    assert output["outcome"] == "success", (output, end.result.stderr.rendered()[-3000:])
    assert output["answer"] == SENTENCE
    assert output["ext"]["acp"]["agent"]["name"] == "gemini-cli"
    assert len(model.paths) >= 2, "one turn of ACP hides several model calls"
    assert end.result.network.mode_effective == "none"
    assert problems(end.written["acp_transcript.jsonl"], directions=("out",))[0] == []
    assert problems(end.written["acp_transcript.jsonl"], directions=("in",))[0] == []


@has_schema
def test_start_session_and_cancel_with_claude_agent_acp(engine: Engine, mounts: Mounts, tmp_path: Path) -> None:
    env = {
        "ANTHROPIC_API_KEY": "stub-key", "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{PORT}",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1",
    }  # fmt: skip
    began = time.monotonic()
    script = "@agentclientprotocol/claude-agent-acp/dist/index.js"

    def poll() -> str | None:
        lines = tmp_path / "staging" / "acp_transcript.jsonl"
        sent = lines.is_file() and b"session/prompt" in lines.read_bytes()
        return "cancelled by the test" if sent or time.monotonic() - began > 60 else None

    end = run_agent(engine, mounts, tmp_path, script, env, timeout_s=90.0, poll=poll)
    output = end.trial_output
    assert output is not None
    evidence = output["ext"]["acp"]
    assert evidence["agent"]["name"] == "@agentclientprotocol/claude-agent-acp", (output, end.result.stderr.rendered())
    assert evidence["session_id"]
    assert evidence["stopped"] == "cancelled by the test"
    assert evidence["turns"][0]["stop_reason"] == "cancelled", output
    assert problems(end.written["acp_transcript.jsonl"], directions=("out",))[0] == []
