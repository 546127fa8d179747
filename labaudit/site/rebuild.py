"""A site and its run to what differs: the pages are rendered again and compared byte by byte.

The signature and the publication log are left out: they are checked by verification, and a rebuild has neither.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from labaudit.core.digest import hash_file
from labaudit.core.strict_json import parse_object
from labaudit.errors import LabauditError
from labaudit.site.build import build_site
from labaudit.site.output import INDEX
from labaudit.site.reading.published_run import safe_path_part
from labaudit.store import atomic
from labaudit.store.run_folder import RunFolder


def compare_with_run(site: Path, run: RunFolder) -> Iterator[tuple[str, str]]:
    """Every path that differs from a fresh build, with a sentence.

    A site of several runs is rendered from all of them; the others are looked for beside the one that was given.
    """
    folders = []
    for run_id in _run_ids(site) or [run.run_id]:
        folder = run.path if run_id in (run.run_id, _named(run)) else run.path.parent / run_id
        if not folder.is_dir():
            yield "index.json", f"the site also shows run {run_id}, which does not lie beside the one that was given"
            return
        folders.append(folder)
    yield from compare_with_runs(site, folders)


def compare_with_runs(site: Path, runs: list[Path]) -> Iterator[tuple[str, str]]:
    """The same for a site of several runs, in the site's order."""
    bundled = _has_bundle(site)
    with tempfile.TemporaryDirectory(prefix="labaudit-rebuild-") as folder:
        fresh = Path(folder) / "site"
        try:
            # A run that does not hold is rendered all the same: the question here is whether the pages follow from it.
            build_site(runs, fresh, allow_failed=True, bundle=bundled)
        except LabauditError as error:
            yield "", f"cannot be rendered again: {error.what}"
            return
        there, wanted = set(_files(site)), set(_files(fresh))
        for path in sorted(wanted - there):
            yield path, "a page that the run gives is missing"
        for path in sorted(there - wanted):
            yield path, "the run does not give this page"
        for path in sorted(there & wanted):
            if hash_file(site / path) != hash_file(fresh / path):
                yield path, "is not the page that the run gives"


def _files(root: Path) -> Iterator[str]:
    for path in root.rglob("*"):
        name = path.relative_to(root).as_posix()
        if path.is_file() and name != "site.sigstore.json" and not name.startswith("log/"):
            yield name


def _has_bundle(site: Path) -> bool:
    """Whether the publisher gave the zip along: a choice, not a claim, so a rebuild follows it."""
    return any(str(item.get("path")).endswith(".zip") for item in _entries(site, "files"))


def _run_ids(site: Path) -> list[str]:
    """The runs that the site says it shows; a plain name only, since it is looked for as a folder."""
    names = [str(item.get("run_id")) for item in _entries(site, "runs")]
    return names if all(safe_path_part(name) for name in names) else []


def _named(run: RunFolder) -> str:
    """The id in the run's manifest: a folder may have been renamed."""
    try:
        return str(parse_object(atomic.read_bytes(run.manifest), where=str(run.manifest)).get("run_id"))
    except LabauditError:
        return ""


def _entries(site: Path, key: str) -> list[dict[str, Any]]:
    try:
        found = parse_object(atomic.read_bytes(site / INDEX), where=INDEX).get(key)
    except LabauditError:
        return []
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []
