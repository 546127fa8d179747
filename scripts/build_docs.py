"""Turns docs/ into the documentation site, strictly: any warning of mkdocs is a failure."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent


def build(site: Path, *, quiet: bool) -> int:
    """Builds into `site` and returns mkdocs' exit code; when `quiet`, mkdocs is heard only if it fails."""
    # mkdocs' own --quiet also silences the warnings that --strict counts, so its output is held back here instead.
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)],
        cwd=TOP,
        check=False,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        stdout=subprocess.PIPE if quiet else None,
        stderr=subprocess.STDOUT if quiet else None,
        text=True,
    )
    if quiet and done.returncode != 0:
        print(done.stdout)
    return done.returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="build to a temporary folder, silent if all is well")
    arguments = parser.parse_args()
    if not arguments.check:
        return build(TOP / "site", quiet=False)
    with tempfile.TemporaryDirectory() as folder:
        return build(Path(folder), quiet=True)


if __name__ == "__main__":
    sys.exit(main())
