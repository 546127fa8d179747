"""Files that are copied into containers, or sent along as source, need the standard library and nothing else."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from labaudit.network.program import HERE, forward_command, proxy_command, write_program

ALONE = ["forward.py", "self_test/canary.py", "self_test/probe.py"]


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name.split(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add("." if node.level else str(node.module).split(".")[0])
    return found


@pytest.mark.parametrize("name", ALONE)
def test_a_single_file_imports_the_standard_library_only(name: str) -> None:
    assert imports(HERE / name) <= sys.stdlib_module_names


def test_the_proxys_folder_imports_the_standard_library_and_itself() -> None:
    files = sorted((HERE / "proxy").glob("*.py"))
    assert len(files) > 8
    for path in files:
        assert imports(path) <= {*sys.stdlib_module_names, "."}, path.name


def test_the_copy_is_whole_and_readable_by_everyone(tmp_path: Path) -> None:
    write_program(tmp_path / "program")
    copied = {str(path.relative_to(tmp_path / "program")) for path in (tmp_path / "program").rglob("*.py")}
    assert copied == {"forward.py", *(f"proxy/{path.name}" for path in (HERE / "proxy").glob("*.py"))}
    for path in (tmp_path / "program").rglob("*"):
        assert path.stat().st_mode & 0o777 == (0o755 if path.is_dir() else 0o644)


def test_programs_start_without_site_packages_and_environment() -> None:
    for command in (proxy_command("python3", "/p", "/c"), forward_command("python3", "/p", {2: "/b", 1: "/a"})):
        assert command[:4] == ("python3", "-I", "-S", "-B")
    assert forward_command("python3", "/p", {2: "/b", 1: "/a"})[4:] == ("/p/forward.py", "1=/a", "2=/b")
