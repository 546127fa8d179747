"""Heavy libraries are paid for only by the command that needs them: checked in a fresh interpreter, not in theory.

import-linter reads the source and so cannot tell a lazy import from an eager one; this test loads the module and looks.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
HEAVY = {
    "cyclonedx", "dask", "distributed", "docker", "fsspec", "in_toto", "jinja2", "mkdocs", "numpy", "opentelemetry",
    "pandas", "pyarrow", "requests", "scipy", "sigstore", "telegram", "urllib3",
}  # fmt: skip
MADE_THE_RUN = {"labaudit.runner", "labaudit.engines", "labaudit.harnesses", "labaudit.site", "labaudit.pipeline"}

LOOK = """
import importlib, json, pkgutil, sys
name = sys.argv[1]
module = importlib.import_module(name)
if sys.argv[2] == "all":
    for found in pkgutil.walk_packages(getattr(module, "__path__", []), name + "."):
        importlib.import_module(found.name)
print(json.dumps(sorted(sys.modules)))
"""


def modules_loaded_by(name: str, *, whole: bool) -> set[str]:
    """Names in sys.modules after importing `name` (and everything below it, if `whole`) in a new interpreter."""
    command = [sys.executable, "-c", LOOK, name, "all" if whole else "one"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


@pytest.mark.parametrize(
    ("name", "whole"),
    [
        ("labaudit", False),
        ("labaudit.cli", False),
        ("labaudit.errors", False),
        ("labaudit.core", True),
        ("labaudit.records", True),
        ("labaudit.sdk", True),
        ("labaudit.store", False),
        ("labaudit.planning", False),
        ("labaudit.evidence", False),
        ("labaudit.grading", True),
        ("labaudit.verify", True),
    ],
)
def test_importing_it_loads_no_heavy_library(name: str, whole: bool) -> None:
    if importlib.util.find_spec(name) is None:
        pytest.fail(f"{name} does not exist")
    assert modules_loaded_by(name, whole=whole) & HEAVY == set()


def test_verify_loads_nothing_that_made_the_run() -> None:
    assert modules_loaded_by("labaudit.verify", whole=True) & MADE_THE_RUN == set()


def test_the_look_itself_sees_a_heavy_library() -> None:
    assert "jinja2" in modules_loaded_by("jinja2", whole=False)


def test_the_sdk_runs_on_the_bare_standard_library(tmp_path: Path) -> None:
    """Copied next to an empty package, as somebody would do in a container that has nothing but python3."""
    (tmp_path / "labaudit").mkdir()
    (tmp_path / "labaudit" / "__init__.py").touch()
    shutil.copytree(TOP / "labaudit" / "sdk", tmp_path / "labaudit" / "sdk")
    # -S leaves out site-packages and -I the environment.
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import labaudit.sdk as sdk; print(sdk.__file__)"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert str(tmp_path) in done.stdout
