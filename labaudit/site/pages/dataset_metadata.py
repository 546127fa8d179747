"""A run to metadata in other people's words: a schema.org Dataset and an RO-Crate (Process Run Crate 0.5).

Text that an agent wrote is not in here; titles and descriptions are the experiment author's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
from markupsafe import Markup

from labaudit import __version__
from labaudit.site.drawing.places import variant_page
from labaudit.site.reading.published_run import PublishedRun

Json = dict[str, Any]
PROFILE = "https://w3id.org/ro/wfrun/process/0.5"


def dataset(run: PublishedRun) -> Json:
    """The run as a schema.org Dataset; addresses are relative to the run's root."""
    named = run.resolved.get("experiment") or {}
    return {
        "@context": "https://schema.org/",
        "@type": "Dataset",
        "name": run.title,
        "description": str(named.get("description") or "")
        or f"{run.totals['scheduled']} trials of {len(run.variants)} variants with recorded evidence.",
        "identifier": run.run_id,
        "sha256": run.manifest_sha256,
        "dateCreated": run.manifest.get("created_at"),
        "keywords": [str(tag) for tag in named.get("tags") or []],
        "isAccessibleForFree": True,
        "creator": {"@type": "SoftwareApplication", "name": "labaudit", "softwareVersion": __version__},
        "variableMeasured": [
            {"@type": "PropertyValue", "name": str(item.get("name")), "measurementTechnique": str(item.get("source"))}
            for item in run.resolved.get("metrics") or []
        ],
        "distribution": [
            {"@type": "DataDownload", "contentUrl": "data/trials-000.json", "encodingFormat": "application/json"},
            {"@type": "DataDownload", "contentUrl": "files/manifest.json", "encodingFormat": "application/json"},
        ],
    }


def json_ld(run: PublishedRun) -> Markup:
    """The dataset as a JSON block for the page's head; `<` is escaped, so that no text can end the block."""
    text = orjson.dumps(dataset(run), option=orjson.OPT_SORT_KEYS).decode()
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))  # noqa: S704


def ro_crate(run: PublishedRun, files: Sequence[Json]) -> Json:
    """`ro-crate-metadata.json` at the run's root: the run and each variant as an action on the harness."""
    harness = ((run.resolved.get("runtime") or {}).get("harness") or {}).get("command") or []
    parts = [{"@id": str(item["path"])} for item in files]
    graph: list[Json] = [
        {
            "@id": "ro-crate-metadata.json",
            "@type": "CreativeWork",
            "about": {"@id": "./"},
            "conformsTo": [{"@id": "https://w3id.org/ro/crate/1.1"}],
        },
        {
            "@id": "./",
            "@type": "Dataset",
            "name": run.title,
            "description": dataset(run)["description"],
            "identifier": run.run_id,
            "datePublished": run.manifest.get("created_at"),
            "license": "not stated by the publisher",
            "conformsTo": {"@id": PROFILE},
            "hasPart": parts,
            "mentions": [{"@id": f"#{name}"} for name in run.variants],
        },
        {"@id": PROFILE, "@type": "CreativeWork", "name": "Process Run Crate", "version": "0.5"},
        {"@id": "#harness", "@type": "SoftwareApplication", "name": " ".join(str(part) for part in harness)},
        {"@id": "#labaudit", "@type": "SoftwareApplication", "name": "labaudit", "softwareVersion": __version__},
    ]
    for name in run.variants:
        rows = [row for row in run.rows if row["variant_id"] == name]
        graph.append(
            {
                "@id": f"#{name}",
                "@type": "CreateAction",
                "name": f"variant {name}",
                "instrument": {"@id": "#harness"},
                "agent": {"@id": "#labaudit"},
                "endTime": run.manifest.get("created_at"),
                "object": {"@id": "files/resolved_experiment.json"},
                "result": [{"@id": variant_page(name)}],
                "description": f"{len(rows)} scheduled trials",
            }
        )
    graph += [
        {"@id": str(item["path"]), "@type": "File", "contentSize": item["size"], "sha256": item["sha256"]}
        for item in files
    ]
    return {"@context": "https://w3id.org/ro/crate/1.1/context", "@graph": graph}
