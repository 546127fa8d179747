"""The commands of docs/verify-without-labaudit.md, executed as they stand: good runs pass, changed ones do not."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.make_run import MadeRun, RunPlan, make_run

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs" / "verify-without-labaudit.md").read_text("utf-8")
BLOCKS = {
    heading.strip(): re.findall(r"^```sh\n(.*?)^```", text, re.S | re.M)
    for heading, text in re.findall(r"^## (.+?)$(.*?)(?=^## |\Z)", PAGE, re.S | re.M)
}
COMMANDS = [
    pytest.param(block, id=f"{heading}-{number}", marks=pytest.mark.node if "node " in block else ())
    for heading, blocks in BLOCKS.items()
    for number, block in enumerate(blocks)
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> MadeRun:
    return make_run(tmp_path_factory.mktemp("documented"), RunPlan(analysis=False))


def shell(block: str, run: Path, key: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {**os.environ, "RUN": str(run), "PUB": str(key), "NODE": str(TESTS / "node"), "PATH": path}
    command = ["bash", "-euo", "pipefail", "-c", block]
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=120)


def test_the_page_has_commands() -> None:
    assert len(COMMANDS) == 8


@pytest.mark.parametrize("block", COMMANDS)
def test_a_documented_command_passes_on_a_good_run(made: MadeRun, tmp_path: Path, block: str) -> None:
    done = shell(block, made.run.path, made.lab.public_key, tmp_path)
    assert done.returncode == 0, done.stderr


def test_the_documented_commands_find_a_changed_manifest(made: MadeRun, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(made.run.path, run)
    (run / "manifest.json").write_bytes((run / "manifest.json").read_bytes() + b" ")
    sums, subject = BLOCKS["Every file: coreutils"][0], BLOCKS["The signature: openssl"][1]
    for block in (sums, subject):
        assert shell(block, run, made.lab.public_key, tmp_path).returncode != 0
