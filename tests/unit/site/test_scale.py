"""Growth: more trials cost more time in proportion, and hardly more memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.make_run import RunPlan, make_run

pytestmark = pytest.mark.acceptance
BUILD = """
import sys
from pathlib import Path
from labaudit.site import build_site
from labaudit.site.reading.run_check import NOT_CHECKED
build_site([Path(sys.argv[1])], Path(sys.argv[2]), checks=[NOT_CHECKED], bundle=False)
"""


def cost(run: Path, out: Path) -> tuple[float, float]:
    """CPU seconds and peak MiB of one build in a process of its own."""
    child = subprocess.Popen([sys.executable, "-c", BUILD, str(run), str(out)])
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = status
    assert status == 0
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def test_memory_stays_flat_and_every_trial_costs_the_same(tmp_path):
    small = make_run(tmp_path / "small", RunPlan(tasks=25)).run.path
    large = make_run(tmp_path / "large", RunPlan(tasks=300)).run.path
    cpu_small, mib_small = cost(small, tmp_path / "site-small")
    cpu_large, mib_large = cost(large, tmp_path / "site-large")
    assert mib_large - mib_small < 25
    # 550 trials more; SITE allows 3.5 ms each, and a shared machine may be twice as slow.
    assert (cpu_large - cpu_small) / 550 < 0.007
    index = json.loads((tmp_path / "site-large" / "index.json").read_bytes())
    pages = [item for item in index["files"] if item["path"].startswith("trials/")]
    assert len(index["files"]) / 600 <= 1.2
    assert sum(item["size"] for item in pages) / 600 <= 12_000
