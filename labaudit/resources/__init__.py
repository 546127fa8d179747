"""Names of schemas, policies and page templates to the files that hold them.

The three folders stand at the top of a checkout, so that they are easy to find and to read; a wheel carries them
inside this package. Both places are looked at, the installed one first.
"""

from __future__ import annotations

import difflib
from functools import cache
from pathlib import Path

from labaudit.errors import BadInput, EnvironmentLacks

_PACKAGE = Path(__file__).resolve().parent
_CHECKOUT = _PACKAGE.parent.parent
_SCHEMA_SUFFIX = ".jsonschema"


def schema_names() -> list[str]:
    """All schemas there are, sorted: `atomic_task_v1`, `attestation_v1`, ..."""
    return sorted(path.name.removesuffix(_SCHEMA_SUFFIX) for path in resource_dir("schemas").glob(f"*{_SCHEMA_SUFFIX}"))


def schema_name(name: str) -> str:
    """The plain name of a schema that may be given with `.jsonschema` or `.json`; BadInput when there is none."""
    stem = name.removesuffix(_SCHEMA_SUFFIX).removesuffix(".json")
    known = schema_names()
    if stem not in known:
        near = difflib.get_close_matches(stem, known, n=1)
        hint = f"did you mean {near[0]}?" if near else "known: " + ", ".join(known)
        raise BadInput(f"there is no schema {name!r}", hint=hint)
    return stem


def schema_path(name: str) -> Path:
    """The file of one schema."""
    return resource_dir("schemas") / f"{schema_name(name)}{_SCHEMA_SUFFIX}"


def read_schema(name: str) -> bytes:
    """The exact bytes of one schema."""
    return schema_path(name).read_bytes()


def policy_path(name: str) -> Path:
    """The file of one policy, such as `default.yaml` or `seccomp.json`; a name without ending means `.yaml`."""
    folder = resource_dir("policies")
    wanted = name if "." in name else f"{name}.yaml"
    if wanted not in {path.name for path in folder.iterdir() if path.is_file()}:
        known = ", ".join(sorted(path.stem for path in folder.glob("*.yaml")))
        raise BadInput(f"there is no bundled policy {name!r}", hint=f"known: {known or 'none'}")
    return folder / wanted


def template_dir() -> Path:
    """The folder of page templates."""
    return resource_dir("site_templates")


@cache
def resource_dir(name: str) -> Path:
    """The folder `schemas`, `policies` or `site_templates`, wherever this installation keeps it."""
    for root in (_PACKAGE, _CHECKOUT):
        folder = root / name
        if folder.is_dir():
            return folder
    raise EnvironmentLacks(
        f"the folder {name}/ is missing from this installation",
        where=str(_PACKAGE),
        hint="install labaudit again; its wheel carries the folder",
    )


def experiment_dir(name: str) -> Path:
    """The folder of a bundled experiment: `starter` or `demo`."""
    return _PACKAGE / "experiments" / name
