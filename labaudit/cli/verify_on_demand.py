"""The parts of a verification that need scipy or the site: loaded only when an option asks for them."""

from __future__ import annotations

import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

from labaudit.errors import EnvironmentLacks, LabauditError
from labaudit.store.run_folder import RunFolder
from labaudit.verify.request import Recompute
from labaudit.verify.sources import CannotRead
from labaudit.verify.verdict import Finding
from labaudit.verify.zip_source import ZipSource


def recompute_analysis(root: Path) -> list[Finding]:
    """What differs between the stored analysis and the one that the trials give now."""
    from labaudit.analysis.recompute import CONTRADICTIONS, recompute

    if not root.is_dir():
        with tempfile.TemporaryDirectory(prefix="labaudit-verify-") as temporary:
            try:
                ZipSource(root).unpack(Path(temporary))
            except (CannotRead, OSError) as error:
                return [Finding("analysis_mismatch", "analysis", f"the bundle cannot be unpacked: {error}")]
            return recompute_analysis(Path(temporary))
    try:
        done = recompute(RunFolder(root))
    except LabauditError as error:
        return [Finding("analysis_mismatch", "analysis", f"cannot be computed again: {error.what}")]
    return [
        Finding("analysis_mismatch", f"analysis/{item.path}", f"{item.status}: {item.detail}")
        for item in done.files
        if item.status in CONTRADICTIONS
    ]


def rebuild_from(run: RunFolder) -> Recompute:
    """A function that renders the site of `run` again and names every page that differs."""

    def rebuild(root: Path) -> list[Finding]:
        return [Finding("site_mismatch", path, what) for path, what in _site("rebuild").compare_with_run(root, run)]

    return rebuild


def page_digest() -> str:
    """The digest of this version's verify.html."""
    return str(_site("verify_page").page_digest())


def _site(name: str) -> Any:
    try:
        return import_module(f"labaudit.site.{name}")
    except ModuleNotFoundError as error:
        raise EnvironmentLacks("this installation has no site builder", hint="install labaudit whole") from error
