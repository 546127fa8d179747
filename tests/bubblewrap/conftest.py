"""What several bubblewrap tests share."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that a sandbox's user can reach, which pytest's own are not."""
    made = Path(tempfile.mkdtemp(prefix="la-image-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)
