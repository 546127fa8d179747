"""The wheel carries schemas, policies and page templates inside the package, and an install finds them there."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
RESOURCES = ("schemas", "policies", "site_templates")

ASK = """
import json, labaudit, labaudit.resources as resources
names = resources.schema_names()
print(json.dumps([labaudit.__file__, names, [len(resources.read_schema(name)) for name in names]]))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=TOP, check=True, capture_output=True)
    (built,) = folder.glob("labaudit-*-py3-none-any.whl")
    return built


def resource_files() -> dict[str, Path]:
    """Name inside the wheel -> file in the checkout, for every resource."""
    return {
        f"labaudit/resources/{path.relative_to(TOP)}": path
        for folder in RESOURCES
        for path in (TOP / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_wheel_holds_every_resource_byte_for_byte(wheel: Path) -> None:
    expected = resource_files()
    assert sum(name.endswith(".jsonschema") for name in expected) >= 21
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if name.startswith("labaudit/resources/") and name in expected}
        assert held == set(expected)
        assert [name for name in held if archive.read(name) != expected[name].read_bytes()] == []


def test_the_wheel_holds_the_package_and_its_license_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"labaudit"}
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    assert "labaudit/py.typed" in names


def test_two_builds_give_the_same_bytes(wheel: Path, tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(build, cwd=TOP, check=True, capture_output=True)
    assert (tmp_path / wheel.name).read_bytes() == wheel.read_bytes()


def test_resources_are_found_when_only_the_wheel_is_there(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    libraries = sysconfig.get_paths()["purelib"]
    # -S leaves out .pth files, and with them the editable install of this checkout.
    program = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {libraries!r}]\n{ASK}"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert str(tmp_path) in done.stdout
    assert "hook_events_v1" in done.stdout


@pytest.mark.acceptance
def test_the_installed_command_works_far_from_any_checkout(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    install = [str(python), "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    # The dependencies come from this environment; the project itself only from the wheel.
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    clean["PYTHONPATH"] = sysconfig.get_paths()["purelib"]
    done = subprocess.run(
        [str(tmp_path / "env" / "bin" / "labaudit"), "schema", "list"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=clean,
    )
    assert done.returncode == 0, done.stderr
    assert "hook_events_v1" in done.stdout
