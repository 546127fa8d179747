"""Made runs with content that a site must survive: hostile text, long logs, connections, no analysis, no signature."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from labaudit.core.canonical import canonical_bytes
from labaudit.planning.schedule import TrialPlanner
from labaudit.store import atomic
from tests.make_run import MadeRun, RunPlan, make_run

SCRIPT = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
HOSTILE_TASKS = (
    SCRIPT,
    "</title></script><svg onload=alert(1)>",
    "bidi \u202eevil\u202c and \u200bzero width",
    "../../etc/passwd",
    "javascript:alert(1)",
    "{{ 7*7 }}{% raw %}",
    "spaces and ünïcode 漢字 💥",
    "a" * 300,
)
HOSTILE_OUTPUT = (
    SCRIPT.encode()
    + b"\x1b[31mred\x1b[0m \x1b]0;title\x07 \xff\xfe bad utf-8 "
    + "\u202egnp.exe\u2066".encode()
    + b"\n</pre><h1>broken out</h1>\n"
)


@contextmanager
def rewriting(change: Callable[[Path, bytes], bytes]) -> Any:
    """While a run is made, `change` may replace the bytes of any file before it is written, hashed and sealed."""
    real_bytes, real_json = atomic.write_bytes, atomic.write_json

    def write_bytes(path: Path, data: bytes, **options: Any) -> None:
        real_bytes(path, change(path, data), **options)

    def write_json(path: Path, value: object, **options: Any) -> bytes:
        data = change(path, canonical_bytes(value))
        real_bytes(path, data, **options)
        return data

    with patch.object(atomic, "write_bytes", write_bytes), patch.object(atomic, "write_json", write_json):
        assert real_json is not atomic.write_json
        yield


@contextmanager
def task_names(names: tuple[str, ...]) -> Any:
    """While a run is made, its tasks are called so."""
    real = TrialPlanner.plan

    def plan(resolved: Any, digest: Any, tasks: Any, **options: Any) -> Any:
        return real(resolved, digest, [*names, *tasks][: len(tasks)], **options)

    with patch.object(TrialPlanner, "plan", plan):
        yield


def hostile_run(folder: Path) -> MadeRun:
    """Tasks, answers, outputs and binary that try to leave the page."""

    def change(path: Path, data: bytes) -> bytes:
        if path.name == "stdout.log":
            return HOSTILE_OUTPUT
        if path.name == "trial_output.json":
            return data.replace(b'"outcome"', b'"answer":' + canonical_bytes(SCRIPT + "\u202e") + b',"outcome"', 1)
        return data

    with task_names(HOSTILE_TASKS), rewriting(change):
        return make_run(folder, RunPlan(tasks=len(HOSTILE_TASKS), lost=frozenset(), failures=frozenset({1, 2})))


def long_run(folder: Path) -> MadeRun:
    """One task with 450 events and ten megabytes of one line."""

    def change(path: Path, data: bytes) -> bytes:
        return b"x" * (10 << 20) if path.name == "stdout.log" else data

    with rewriting(change):
        return make_run(folder, RunPlan(tasks=1, events=448, lost=frozenset(), failures=frozenset()))
