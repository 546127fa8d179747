"""`python3 -m labaudit.sdk FOLDER`: copies the SDK to FOLDER/labaudit_sdk, where a harness can import it."""

from __future__ import annotations

import sys
from pathlib import Path

from .files import write_whole

NAME = "labaudit_sdk"


def sdk_files() -> dict[str, bytes]:
    """Every file of the SDK by name."""
    return {path.name: path.read_bytes() for path in sorted(Path(__file__).resolve().parent.glob("*.py"))}


def copy_sdk(folder: str) -> str:
    """Writes the SDK below `folder`; returns where it is."""
    target = Path(folder) / NAME
    for name, data in sdk_files().items():
        write_whole(str(target / name), data)
    return str(target)


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit("usage: python3 -m labaudit.sdk FOLDER")
    sys.stdout.write(copy_sdk(sys.argv[1]) + "\n")
