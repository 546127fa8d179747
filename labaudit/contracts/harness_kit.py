"""The scenario code of this package to a folder that a harness carries into its sandbox.

    examples/booking/harness/
      harness.py                 three lines: runs `contracts_kit.scenarios.harness`
      contracts_kit/scenarios/   copied from here
      contracts_kit/modules/     copied from here, or your own modules in their place

A sandbox has no labaudit in it, so the harness brings the code it needs as plain files; `differences` tells when a copy
is no longer the code that the installed labaudit would run.
"""

from __future__ import annotations

from pathlib import Path

from labaudit.store import atomic

KIT = "contracts_kit"
_PACKAGE = Path(__file__).resolve().parent
_FOLDERS = ("scenarios", "modules")
_INIT = b'"""Scenario executor and example modules, copied from labaudit.contracts; standard library only."""\n'


def kit_files() -> dict[str, bytes]:
    """Every file of the kit by its path below the kit's folder."""
    files = {"__init__.py": _INIT}
    for folder in _FOLDERS:
        for path in sorted((_PACKAGE / folder).glob("*.py")):
            files[f"{folder}/{path.name}"] = path.read_bytes()
    return files


def write_kit(harness_folder: Path) -> list[Path]:
    """Writes the kit below a harness's source folder; returns the files it wrote."""
    written = []
    for name, data in kit_files().items():
        path = harness_folder / KIT / name
        atomic.write_bytes(path, data)
        written.append(path)
    return written


def differences(harness_folder: Path) -> list[str]:
    """Names of kit files that are missing below `harness_folder` or differ from the installed ones."""
    kit = harness_folder / KIT
    return [
        name
        for name, data in kit_files().items()
        if not (kit / name).is_file() or (kit / name).read_bytes() != data
    ]
