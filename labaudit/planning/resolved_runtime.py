"""The `runtime` block as authored to the resolved one: engine, image, harness, network, cache."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

from labaudit.core.digest import sha256_hex
from labaudit.errors import BadInput, LabauditError
from labaudit.planning.surroundings import FoundHarness, Surroundings
from labaudit.planning.yaml_source import Located
from labaudit.records.experiment_runtime import AllowOnce, HarnessConfig, RuntimeConfig
from labaudit.records.parts import SourceProvenance
from labaudit.records.resolved_runtime import (
    ResolvedAllowOnce,
    ResolvedCache,
    ResolvedCheckpoints,
    ResolvedEngine,
    ResolvedHarness,
    ResolvedImage,
    ResolvedMcpServer,
    ResolvedNetwork,
    ResolvedResources,
    ResolvedRuntime,
    ResolvedTimeouts,
    ResolvedTracing,
)
from labaudit.records.trial_input import Budgets, ControlPlane
from labaudit.store.artifact_store import REFERENCE_PREFIX

# Sandboxes show their surfaces under these names; a harness path elsewhere would never be found.
IN_FOLDER, OUT_FOLDER, STATE_FOLDER = "/in/", "/out/", "/state/"


@dataclass(frozen=True)
class RuntimeResolution:
    """The resolved block and the folders that it names."""

    record: ResolvedRuntime
    source: Path | None
    archive: bytes | None
    cache: Path | None


def resolve_runtime(
    authored: RuntimeConfig, located: Located, base: Path, surroundings: Surroundings
) -> RuntimeResolution:
    """Looks up engine, image, harness and cache."""
    harness = authored.harness
    _check_paths(harness, located)
    network = authored.network
    source = base / harness.source if harness.source is not None else None
    if source is not None and not source.is_dir():
        where = located.where(("runtime", "harness", "source"))
        raise BadInput(f"{harness.source} is no directory", where=where, hint="it is relative to the experiment file")
    lockfile = base / harness.lockfile if harness.lockfile is not None else None
    if lockfile is not None and not lockfile.is_file():
        where = located.where(("runtime", "harness", "lockfile"))
        raise BadInput(f"{harness.lockfile} is no file", where=where, hint="it is relative to the experiment file")
    try:
        surroundings.check_network(network.mode, network.enforcement, network.allowed_hosts, network.allowed_networks)
        image = surroundings.image(_image_reference(authored.image, base))
        found = surroundings.harness(source, harness.command, lockfile, image.id)
    except LabauditError as error:
        raise (located.at_line(error) if error.where.startswith("runtime.") else error) from error
    cache = base / authored.cache.path if authored.cache is not None else None
    if cache is not None and not cache.is_dir():
        raise BadInput("the cache folder is not there", where=located.where(("runtime", "cache")))
    record = ResolvedRuntime(
        engine=ResolvedEngine(
            requested=authored.engine,
            resolved=surroundings.engine_name,  # type: ignore[arg-type]
            reason=surroundings.engine_reason,
        ),
        image=ResolvedImage(requested=_recorded_image(authored.image, base), id=image.id, origin=image.origin),  # type: ignore[arg-type]
        harness=_harness(harness, found, base),
        network=ResolvedNetwork(
            mode=network.mode,
            enforcement=network.enforcement,
            allowed_hosts=network.allowed_hosts,
            allowed_networks=network.allowed_networks,
        ),
        budgets=Budgets(**authored.budgets.model_dump()),
        timeouts=ResolvedTimeouts(**authored.timeouts.model_dump()),
        resources=ResolvedResources(**authored.resources.model_dump()),
        checkpoints=ResolvedCheckpoints(**authored.checkpoints.model_dump()),
        cache=_cache(authored, base, cache, surroundings),
    )
    return RuntimeResolution(record, source, found.archive, cache)


def _check_paths(harness: HarnessConfig, located: Located) -> None:
    for key, value, folder in (
        ("input_path", harness.input_path, IN_FOLDER),
        ("output_path", harness.output_path, OUT_FOLDER),
    ):
        if not directly_below(folder, value):
            where = located.where(("runtime", "harness", key))
            raise BadInput(f"{key} must be a file directly below {folder}, got {value!r}", where=where)
    control = harness.control_plane
    if control.path is not None and not directly_below(STATE_FOLDER, control.path):
        # A folder in between would belong to the harness, which could put a link to elsewhere in its place.
        where = located.where(("runtime", "harness", "control_plane", "path"))
        raise BadInput(f"the control file must be directly below {STATE_FOLDER}, got {control.path!r}", where=where)
    overlap = sorted(set(harness.env) & set(harness.secrets))
    if overlap:
        where = located.where(("runtime", "harness", "env", overlap[0]))
        hint = "a secret is never written down"
        raise BadInput(f"{overlap[0]} is both in env and in secrets", where=where, hint=hint)


def directly_below(folder: str, path: str) -> bool:
    """True when `path` names a file that stands in `folder` itself."""
    name = path.removeprefix(folder)
    return path.startswith(folder) and "/" not in name and "\0" not in name and name not in {"", ".", ".."}


def recorded(path: str | None, base: Path) -> str | None:
    """A path as the run records it: relative to the experiment, since no file of a run holds an absolute one."""
    return os.path.relpath(path, base.resolve()) if path is not None and Path(path).is_absolute() else path


def _image_reference(reference: str | None, base: Path) -> str | None:
    """An archive is named relative to the experiment file; anything else is a name or an id."""
    return str(base / reference) if _is_archive(reference) else reference


def _recorded_image(reference: str | None, base: Path) -> str | None:
    return recorded(reference, base) if _is_archive(reference) else reference


def _is_archive(reference: str | None) -> TypeGuard[str]:
    return reference is not None and reference.endswith((".tar", ".tar.gz", ".tgz"))


def _harness(authored: HarnessConfig, found: FoundHarness, base: Path) -> ResolvedHarness:
    permissions = authored.permissions
    if isinstance(permissions, AllowOnce):
        resolved_permissions: ResolvedAllowOnce | str | None = ResolvedAllowOnce(allow_once=permissions.allow_once)
    else:
        resolved_permissions = permissions
    servers = authored.mcp_servers
    return ResolvedHarness(
        mode=authored.mode,
        command=authored.command,
        source=recorded(authored.source, base),
        source_digest=found.source_digest,
        source_provenance=SourceProvenance.from_json(found.source_provenance) if found.source_provenance else None,
        source_archive_ref=REFERENCE_PREFIX + sha256_hex(found.archive) if found.archive is not None else None,
        exec_digest=found.exec_digest,
        lockfile=recorded(authored.lockfile, base),
        lockfile_digest=found.lockfile_digest,
        runtime_fingerprint=found.runtime_fingerprint,
        integration_level=authored.integration_level,
        control_plane=ControlPlane(mode=authored.control_plane.mode, path=authored.control_plane.path),
        tracing=ResolvedTracing(**authored.tracing.model_dump()),
        env=authored.env,
        secrets=authored.secrets,
        input_path=authored.input_path,
        output_path=authored.output_path,
        prompt=authored.prompt,
        permissions=resolved_permissions,  # type: ignore[arg-type]
        mode_id=authored.mode_id,
        model=authored.model,
        mcp_servers=None
        if servers is None
        else tuple(ResolvedMcpServer.model_validate(server.model_dump(exclude_none=True)) for server in servers),
        dialect=authored.dialect,
    )


def _cache(
    authored: RuntimeConfig, base: Path, cache: Path | None, surroundings: Surroundings
) -> ResolvedCache | None:
    if authored.cache is None or cache is None:
        return None
    return ResolvedCache(path=recorded(authored.cache.path, base) or ".", digest=surroundings.folder_digest(cache))
