"""Files of a run that a reader may take away to `files/`, `downloads/` and `downloads.html`, each by digest.

Run-level files and signatures are copied; the whole run goes along as one zip when it is small. What is not here is
listed as withheld, by digest, never left out.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from labaudit.attest.bundle_zip import write_bundle
from labaudit.errors import BadInput
from labaudit.resources import resource_dir, schema_names
from labaudit.site.output import SiteFile, SiteWriter
from labaudit.site.pages.dataset_metadata import dataset, ro_crate
from labaudit.site.pages.run_pages import RunSite

Json = dict[str, Any]
BUNDLE_LIMIT = 48 << 20
FILE_LIMIT = 64 << 20
# Kinds that no host serves as a page: whatever else a run holds could run as one in the site's name.
SUFFIXES = {"", ".json", ".jsonl", ".parquet", ".digest", ".csv", ".link", ".layout"}


def write_downloads(site: RunSite, *, bundle: bool | None) -> None:
    """Copies, the zip (`bundle` None: when it is small), RO-Crate, and the page that lists them."""
    copies = [_entry(site, item) for item in _copy_files(site)]
    zip_file = _bundle(site, bundle)
    crate = ro_crate(site.run, [*copies, *([zip_file] if zip_file else [])])
    site.write_json("ro-crate-metadata.json", crate)
    site.write_json("dataset.jsonld", dataset(site.run))
    inside = {name for item in copies for name in [item["name"]]}
    withheld = [
        {"name": path, "size": item.get("size"), "sha256": item.get("sha256")}
        for path, item in sorted(site.run.listed.items())
        if path not in inside and not path.startswith("artifacts/")
    ]
    store = (site.run.attestation or {}).get("artifact_store") or {}
    site.page(
        "downloads.html",
        "downloads.html",
        copies=copies,
        zip_file=zip_file,
        withheld=withheld,
        store=store,
        redaction=(site.run.attestation or {}).get("redaction") or {},
        schemas=schema_names(),
        asked=bundle,
    )


def write_schemas(writer: SiteWriter) -> None:
    """The schemas of every format, so that a reader needs nothing from elsewhere."""
    for path in sorted(resource_dir("schemas").glob("*.jsonschema")):
        writer.copy(f"schemas/{path.name}", path)


def _copy_files(site: RunSite) -> list[SiteFile]:
    run, found = site.run, []
    names = [path for path in sorted(run.listed) if not path.startswith("artifacts/")]
    for name in [*names, "manifest.json", *_attestations(site)]:
        source = run.folder.path / name
        if not _is_plain(name) or PurePosixPath(name).suffix not in SUFFIXES:
            continue
        if source.is_symlink() or not source.is_file():
            continue
        if source.stat().st_size > FILE_LIMIT:
            continue
        copied = site.writer.copy(f"{site.base}files/{name}", source)
        wanted = (run.listed.get(name) or {}).get("sha256", copied.sha256)
        if copied.sha256 != wanted and site.check.holds:
            raise BadInput("changed while the site was built", where=str(source), hint="build it again")
        found.append(copied)
    return found


def _attestations(site: RunSite) -> list[str]:
    folder = site.run.folder.attestations
    if not folder.is_dir():
        return []
    return sorted(f"attestations/{path.name}" for path in folder.iterdir() if path.is_file() and path.name[0] != ".")


def _is_plain(name: str) -> bool:
    pure = PurePosixPath(name)
    return not pure.is_absolute() and ".." not in pure.parts and "\\" not in name and "\0" not in name


def _entry(site: RunSite, item: SiteFile) -> Json:
    path = item.path.removeprefix(site.base)
    return {"path": path, "name": path.removeprefix("files/"), "size": item.size, "sha256": item.sha256}


def _bundle(site: RunSite, wanted: bool | None) -> Json | None:
    """The zip of the whole run folder; its bytes follow from the run alone."""
    if wanted is False or not site.check.holds:
        return None
    if wanted is None and _size(site) > BUNDLE_LIMIT:
        return None
    path = f"{site.base}downloads/{site.run.run_id}.zip"
    target = site.writer.temporary(path)
    write_bundle(site.run.folder.path, site.run.run_id, target)
    return _entry(site, site.writer.adopt(path))


def _size(site: RunSite) -> int:
    """Bytes of the run by its own lists, an upper bound that needs no walk over the folder."""
    listed = sum(int(item.get("size") or 0) for item in site.run.listed.values())
    return listed + site.tally.bytes
