"""The site's files for programs: assets, headers for hosts, `index.json` over everything, `SHA256SUMS`."""

from __future__ import annotations

from collections.abc import Sequence

from labaudit import __version__
from labaudit.attest.derived_files import sum_line
from labaudit.core.canonical import canonical_bytes
from labaudit.core.digest import sha256_hex
from labaudit.site.drawing.templates import asset
from labaudit.site.output import INDEX, INDEX_SCHEMA, SiteWriter
from labaudit.site.pages.frame import CSP
from labaudit.site.pages.trial_page import grade_rows
from labaudit.site.reading.published_run import PublishedRun
from labaudit.site.reading.run_check import RunCheck

ASSETS = ("trials.js",)
SUMS = "SHA256SUMS"
HEADERS = {
    "Content-Security-Policy": CSP + "; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "interest-cohort=()",
}


def write_assets(writer: SiteWriter) -> None:
    """Scripts that verify.html does not share, and the headers for hosts that read `_headers`."""
    for name in ASSETS:
        writer.write(f"assets/{name}", asset(name))
    lines = ["/*", *(f"  {name}: {value}" for name, value in HEADERS.items()), ""]
    writer.write("_headers", "\n".join(lines).encode())


def write_index(writer: SiteWriter, runs: Sequence[PublishedRun], checks: Sequence[RunCheck]) -> bytes:
    """`index.json` and `SHA256SUMS`; returns the index, which is what the site's signature is about."""
    document = {
        "schema_version": INDEX_SCHEMA,
        "tool": {"name": "labaudit", "version": __version__},
        "runs": [
            {
                "run_id": run.run_id,
                "root": "" if len(runs) == 1 else f"runs/{run.run_id}/",
                "manifest_sha256": run.manifest_sha256,
                "resolved_digest": run.manifest.get("resolved_digest"),
                "created_at": run.manifest.get("created_at"),
                "verdict": check.verdict,
                "totals": {name: run.totals[name] for name in ("scheduled", "included", "excluded", "lost")},
                "grades": {row["name"]: row["value"] for row in grade_rows(run.grades)},
                "integration_level": ((run.grades or {}).get("integration_level") or {}).get("observed"),
            }
            for run, check in zip(runs, checks, strict=True)
        ],
        "files": [writer.files[path].as_json() for path in sorted(writer.files)],
    }
    data = canonical_bytes(document)
    digest = sha256_hex(data)
    writer.temporary(INDEX).write_bytes(data)
    sums = [sum_line(writer.files[path].sha256, path) for path in sorted(writer.files)]
    writer.temporary(SUMS).write_bytes(b"".join([*sums, sum_line(digest, INDEX)]))
    return data
