"""What sandboxes may leave behind on a machine, counted; and a runner that dies in the middle of a trial."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from labaudit.engines.host.cgroups import CONTROLLERS, ROOT

REPOSITORY = Path(__file__).parents[1]
# a runner that starts a trial, says where its folder is, and then waits to be killed or interrupted
RUNNER = """
import sys, time
from labaudit.engines.protocol import NetworkSpec
from labaudit.engines.select import select_engine
from tests.engine_contract import opened

engine, _ = select_engine(sys.argv[1])
network = NetworkSpec("allowlist_enforced", ("a.example",), pooled=sys.argv[2] == "pooled")
with engine, opened(engine, "sleep", "300", network=network) as sandbox:
    sandbox.start()
    print(sandbox.host.out, flush=True)
    sandbox.wait()
"""


@contextmanager
def own_runtime_folder() -> Iterator[Path]:
    """A runtime folder for one test, so that what others run meanwhile does not count."""
    base = Path(tempfile.mkdtemp(prefix="la-"))
    base.chmod(0o755)
    before = os.environ.get("LABAUDIT_RUNTIME_DIR")
    os.environ["LABAUDIT_RUNTIME_DIR"] = str(base / "rt")
    try:
        yield base / "rt"
    finally:
        if before is None:
            del os.environ["LABAUDIT_RUNTIME_DIR"]
        else:
            os.environ["LABAUDIT_RUNTIME_DIR"] = before
        shutil.rmtree(base)


def left_over(runtime: Path) -> dict[str, set[str]]:
    """Folders, mounts and proxies below a runtime folder."""
    mounts = {line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()}
    return {
        "folders": {path.name for path in runtime.iterdir()} if runtime.exists() else set(),
        "mounts": {path for path in mounts if path.startswith(str(runtime))},
        "proxies": _processes_naming(str(runtime)),
    }


NOTHING: dict[str, set[str]] = {"folders": set(), "mounts": set(), "proxies": set()}


def groups_of(names: Iterable[str]) -> set[str]:
    """Control groups of sandboxes with these ids."""
    places = {ROOT / name for name in CONTROLLERS} | {ROOT / "labaudit"}
    return {str(path) for place in places for name in names for path in place.glob(f"labaudit-{name}.*")}


def _processes_naming(word: str) -> set[str]:
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if word.encode() in (entry / "cmdline").read_bytes():
                    found.add(entry.name)
    return found


def start_runner(engine: str, pooling: str) -> tuple[subprocess.Popen[bytes], Path]:
    """A runner in the middle of a trial, and its trial's runtime folder."""
    runner = subprocess.Popen(
        [sys.executable, "-c", RUNNER, engine, pooling], cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert runner.stdout is not None
    said = runner.stdout.readline().decode().strip()
    assert said, runner.stderr.read() if runner.stderr else ""
    return runner, Path(said).parent


def end_runner(runner: subprocess.Popen[bytes], number: int) -> None:
    """Signals it and waits for its end."""
    os.kill(runner.pid, number)
    runner.wait(60)
    for pipe in (runner.stdout, runner.stderr):
        if pipe is not None:
            pipe.close()

