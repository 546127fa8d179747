"""Sealed runs to a static site: checked first, rendered in one pass per run, listed and signed, then put in place.

The same runs give the same bytes anywhere: no clock, no folder name, no hash order enters a page. Only the signature
and the publication log differ between two builds, and neither is part of what `index.json` lists.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from labaudit.core.digest import sha256_hex
from labaudit.errors import BadInput, Contradiction
from labaudit.site.machine_files import write_assets, write_index
from labaudit.site.output import SiteWriter
from labaudit.site.pages.attestations import write_attestations
from labaudit.site.pages.compare import write_compare
from labaudit.site.pages.downloads import write_downloads, write_schemas
from labaudit.site.pages.front import write_front
from labaudit.site.pages.grades import write_grades
from labaudit.site.pages.network import write_network
from labaudit.site.pages.overview import write_overview
from labaudit.site.pages.run_pages import Progress, RunSite, start, write_trials
from labaudit.site.pages.sbom import write_sbom
from labaudit.site.pages.variant import write_variants
from labaudit.site.reading.lineage import families
from labaudit.site.reading.published_run import PublishedRun, read_run
from labaudit.site.reading.run_check import RunCheck, check_run
from labaudit.site.signing import Publisher, sign
from labaudit.site.verify_page import write_verify_page


@dataclass(frozen=True)
class BuiltSite:
    """Where the site stands, what it is made of, and what the check of each run said."""

    path: Path
    index_sha256: str
    files: int
    size: int
    run_ids: tuple[str, ...]
    verdicts: tuple[str, ...]
    signer: str | None

    @property
    def front_page(self) -> Path:
        """The page to open first."""
        return self.path / "index.html"


def build_site(
    runs: Sequence[Path],
    out: Path,
    *,
    publisher: Publisher | None = None,
    allow_failed: bool = False,
    bundle: bool | None = None,
    checks: Sequence[RunCheck] | None = None,
    progress: Progress | None = None,
) -> BuiltSite:
    """Builds the site of one or more sealed runs at `out`, replacing a site that stands there.

    A run that does not hold is refused (Contradiction) unless `allow_failed`; then its pages say so first. `bundle`
    puts a zip of each run into the site; None does so when it is small. `checks` are results that the caller has.
    """
    published = _read(runs, out)
    found = list(checks) if checks is not None else [check_run(run) for run in published]
    for run, check in zip(published, found, strict=True):
        if not check.holds and not allow_failed:
            raise _refusal(run, check)
    related = families(published)
    with SiteWriter(out) as writer:
        write_verify_page(writer)
        write_assets(writer)
        write_schemas(writer)
        for run, check in zip(published, found, strict=True):
            base = "" if len(published) == 1 else f"runs/{run.run_id}/"
            write_run(start(writer, run, check, base, related[run.run_id]), bundle=bundle, progress=progress)
        write_front(writer, published, found, related)
        write_compare(writer, published)
        index = write_index(writer, published, found)
        signer = sign(writer, index, published, publisher) if publisher else None
        size = sum(item.size for item in writer.files.values())
        names, verdicts = (run.run_id for run in published), (check.verdict for check in found)
        return BuiltSite(out, sha256_hex(index), len(writer.files), size, tuple(names), tuple(verdicts), signer)


def write_run(site: RunSite, *, bundle: bool | None, progress: Progress | None) -> None:
    """All pages of one run: the trials first, because the others speak about all of them."""
    write_trials(site, progress)
    write_overview(site)
    write_grades(site)
    write_variants(site)
    write_network(site)
    write_attestations(site)
    write_sbom(site)
    records_from = "imported" if site.run.import_report is not None else "framework_events"
    site.page("contracts.html", "contracts.html", records_from=records_from, **site.contracts.context())
    write_downloads(site, bundle=bundle)


def _read(runs: Sequence[Path], out: Path) -> list[PublishedRun]:
    if not runs:
        raise BadInput("no run to publish", hint="labaudit site latest --out DIR")
    place = out.resolve()
    for path in runs:
        if place == Path(path).resolve() or Path(path).resolve() in place.parents:
            raise BadInput("a site cannot stand inside a run", where=str(out), hint="choose another --out")
    published = [read_run(Path(path)) for path in runs]
    names = [run.run_id for run in published]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise BadInput(f"the run {twice[0]} is named twice")
    return published


def _refusal(run: PublishedRun, check: RunCheck) -> Contradiction:
    first = check.findings[0] if check.findings else {"path": "", "message": "no finding", "code": ""}
    more = f" (and {len(check.findings) - 1} more)" if len(check.findings) > 1 else ""
    what = f"the run does not hold: {first['path'] + ': ' if first['path'] else ''}{first['message']}{more}"
    hint = f"labaudit verify {run.folder.path} says more; --publish-failed builds a site that says so first"
    return Contradiction(what, where=str(run.folder.path), hint=hint)
