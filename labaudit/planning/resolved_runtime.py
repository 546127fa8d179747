"""The `runtime` block as authored to the resolved one: engine, image, harness, network, cache."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from labaudit.core.digest import sha256_hex
from labaudit.errors import BadInput
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
IN_FOLDER, OUT_FOLDER = "/in/", "/out/"


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
    surroundings.check_network(network.mode, network.enforcement, network.allowed_hosts, network.allowed_networks)
    image = surroundings.image(_image_reference(authored.image, base))
    source = base / harness.source if harness.source is not None else None
    if source is not None and not source.is_dir():
        where = located.where(("runtime", "harness", "source"))
        raise BadInput(f"{harness.source} is no directory", where=where, hint="it is relative to the experiment file")
    lockfile = base / harness.lockfile if harness.lockfile is not None else None
    found = surroundings.harness(source, harness.command, lockfile, image.id)
    cache = base / authored.cache.path if authored.cache is not None else None
    if cache is not None and not cache.is_dir():
        raise BadInput("the cache folder is not there", where=located.where(("runtime", "cache")))
    record = ResolvedRuntime(
        engine=ResolvedEngine(
            requested=authored.engine,
            resolved=surroundings.engine_name,  # type: ignore[arg-type]
            reason=surroundings.engine_reason,
        ),
        image=ResolvedImage(requested=authored.image, id=image.id, origin=image.origin),  # type: ignore[arg-type]
        harness=_harness(harness, found),
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
        cache=_cache(authored, cache, surroundings),
    )
    return RuntimeResolution(record, source, found.archive, cache)


def _check_paths(harness: HarnessConfig, located: Located) -> None:
    for key, value, folder in (
        ("input_path", harness.input_path, IN_FOLDER),
        ("output_path", harness.output_path, OUT_FOLDER),
    ):
        name = value.removeprefix(folder)
        if not value.startswith(folder) or "/" in name or name in {"", ".", ".."}:
            where = located.where(("runtime", "harness", key))
            raise BadInput(f"{key} must be a file directly below {folder}, got {value!r}", where=where)
    control = harness.control_plane
    if control.path is not None and not control.path.startswith("/state/"):
        where = located.where(("runtime", "harness", "control_plane", "path"))
        raise BadInput(f"the control file must be below /state/, got {control.path!r}", where=where)
    overlap = sorted(set(harness.env) & set(harness.secrets))
    if overlap:
        where = located.where(("runtime", "harness", "env", overlap[0]))
        hint = "a secret is never written down"
        raise BadInput(f"{overlap[0]} is both in env and in secrets", where=where, hint=hint)


def _image_reference(reference: str | None, base: Path) -> str | None:
    """An archive is named relative to the experiment file; anything else is a name or an id."""
    if reference is not None and reference.endswith((".tar", ".tar.gz", ".tgz")):
        return str(base / reference)
    return reference


def _harness(authored: HarnessConfig, found: FoundHarness) -> ResolvedHarness:
    permissions = authored.permissions
    if isinstance(permissions, AllowOnce):
        resolved_permissions: ResolvedAllowOnce | str | None = ResolvedAllowOnce(allow_once=permissions.allow_once)
    else:
        resolved_permissions = permissions
    servers = authored.mcp_servers
    return ResolvedHarness(
        mode=authored.mode,
        command=authored.command,
        source=authored.source,
        source_digest=found.source_digest,
        source_provenance=SourceProvenance.from_json(found.source_provenance) if found.source_provenance else None,
        source_archive_ref=REFERENCE_PREFIX + sha256_hex(found.archive) if found.archive is not None else None,
        exec_digest=found.exec_digest,
        lockfile=authored.lockfile,
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


def _cache(authored: RuntimeConfig, cache: Path | None, surroundings: Surroundings) -> ResolvedCache | None:
    if authored.cache is None or cache is None:
        return None
    return ResolvedCache(path=authored.cache.path, digest=surroundings.folder_digest(cache))
