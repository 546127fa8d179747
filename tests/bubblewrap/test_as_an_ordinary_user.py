"""The bubblewrap tests once more, by a user who is not root: nothing but limits and quotas may be lost."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from labaudit.engines.images.cache import ImageCache, cache_folder

pytestmark = [pytest.mark.bubblewrap, pytest.mark.acceptance]
USER = 61234
AS_USER = ("setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups")
REPOSITORY = Path(__file__).parents[2]


def interpreter() -> str | None:
    """A Python of the same version that any user may execute: the venv's own may lie in root's home."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for candidate in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        # through env: setpriv itself still has root's rights when it looks for the program
        command = [*AS_USER, "env", candidate, "-c", "import ssl"]
        if Path(candidate).exists() and subprocess.run(command, capture_output=True, check=False).returncode == 0:
            return candidate
    return None


@pytest.mark.skipif(os.geteuid() != 0, reason="this already is an ordinary user")
def test_the_contracts_hold_without_root() -> None:
    python = interpreter()
    if python is None:
        pytest.skip("no Python of this version that another user may execute")
    image = ImageCache().bundled()
    ImageCache().tree(image)
    home = Path(tempfile.mkdtemp(prefix="la-user-"))
    os.chown(home, USER, USER)
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    env = {"PATH": "/usr/bin:/bin", "HOME": str(home), "TMPDIR": str(home), "LABAUDIT_CACHE_DIR": str(cache_folder()),
           "LABAUDIT_RUNTIME_DIR": f"{home}/rt", "PYTHONDONTWRITEBYTECODE": "1",
           "PYTHONPATH": f"{REPOSITORY}:{packages}"}  # fmt: skip
    command = [*AS_USER, python, "-m", "pytest", "-q", "-m", "not acceptance",
               "tests/bubblewrap", "tests/unit/engines/test_process_engine.py"]  # fmt: skip
    try:
        done = subprocess.run(command, cwd=REPOSITORY, env=env, capture_output=True, timeout=280, check=False)
        assert done.returncode == 0, done.stdout.decode()[-3000:]
        assert b" skipped" in done.stdout or b"SKIPPED" in done.stdout  # control groups and quotas need root
        assert list((home / "rt").iterdir()) == []
    finally:
        shutil.rmtree(home, ignore_errors=True)
