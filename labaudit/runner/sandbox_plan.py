"""A planned trial to the sandbox it needs and the input that its harness reads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

from labaudit.engines.protocol import (
    Limits,
    LoopbackService,
    NetworkSpec,
    ReadOnlyMount,
    Sandbox,
    SandboxLabels,
    SandboxSpec,
)
from labaudit.errors import BadInput
from labaudit.harnesses.select import harness_environment
from labaudit.planning.resolved_runtime import directly_below
from labaudit.planning.schedule import PlannedTrial
from labaudit.runner.context import RunContext

OTLP_PORT = 4318
CACHE = "/cache"
REPLAY = "/replay"


def limits_of(ctx: RunContext) -> Limits:
    """The limits that the spec asks for."""
    resources = ctx.resolved.runtime.resources
    return Limits(
        memory_mb=resources.memory_mb,
        cpus=float(resources.cpus),
        pids=resources.pids,
        out_mb=resources.out_mb,
        workspace_mb=resources.workspace_mb,
    )


def sandbox_spec(
    ctx: RunContext, planned: PlannedTrial, attempt: int, *, attach: bool, services: Sequence[LoopbackService] = ()
) -> SandboxSpec:
    """The sandbox of one attempt."""
    runtime = ctx.resolved.runtime
    mounts = [ReadOnlyMount(ctx.cache, CACHE, "cache")] if ctx.cache is not None else []
    if ctx.linked is not None and ctx.linked.boundaries is not None:
        mounts.append(ReadOnlyMount(ctx.linked.boundaries, REPLAY, "replay"))
    return SandboxSpec(
        image=ctx.image_id,
        command=tuple(runtime.harness.command),
        labels=SandboxLabels(ctx.run_id, planned.trial_id, attempt),
        env=environment(ctx, services),
        dataset=ctx.dataset_folder,
        harness=ctx.harness_source,
        read_only=tuple(mounts),
        limits=limits_of(ctx),
        network=network_spec(ctx),
        services=tuple(services),
        timeout_s=float(runtime.timeouts.trial_seconds),
        attach=attach,
    )


def network_spec(ctx: RunContext) -> NetworkSpec:
    """What the engine is asked for. One that cannot enforce an allowlist is asked for what it can give, an open
    network: the inventory then says that an allowlist was wanted and not found."""
    network = ctx.resolved.runtime.network
    if network.mode == "allowlist_enforced" and ctx.engine.name == "process":
        return NetworkSpec(mode="full")
    return NetworkSpec(
        mode=network.mode,
        allowed_hosts=tuple(network.allowed_hosts),
        allowed_networks=tuple(network.allowed_networks),
        pooled=ctx.options.pooled_proxy,
    )


def environment(ctx: RunContext, services: Sequence[LoopbackService]) -> dict[str, str]:
    """Variables of the harness: the author's, the secrets, and those that the contract promises."""
    harness = ctx.resolved.runtime.harness
    env = {"PYTHONDONTWRITEBYTECODE": "1", **harness_environment(ctx.resolved), **harness.env, **ctx.secrets}
    env["LABAUDIT_TRIAL_INPUT"] = harness.input_path
    otlp = next((service for service in services if service.name == "otlp"), None)
    if otlp is not None:
        env["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://127.0.0.1:{otlp.port}"
        env["OTEL_EXPORTER_OTLP_PROTOCOL"] = env.get("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
    if ctx.linked is not None and ctx.linked.boundaries is not None:
        env["LABAUDIT_REPLAY_BOUNDARIES"] = f"{REPLAY}/sdk_boundaries.jsonl"
        if ctx.linked.until_step is not None:
            env["LABAUDIT_REPLAY_UNTIL_STEP"] = str(ctx.linked.until_step)
    return env


def trial_input(ctx: RunContext, planned: PlannedTrial, sandbox: Sandbox, ids: dict[str, Any]) -> dict[str, Any]:
    """The content of `trial_input.json`, with the paths as this sandbox shows them."""
    resolved = ctx.resolved
    harness = resolved.runtime.harness
    inside = sandbox.inside
    paths: dict[str, str] = {
        "workspace": inside.workspace,
        "state": inside.state,
        "dataset": inside.dataset or "",
        "out": inside.out,
        "tmp": inside.tmp,
    }
    if ctx.cache is not None:
        # Without a sandbox nothing is mounted, so the folder is where it is.
        paths["cache"] = str(ctx.cache) if ctx.engine.name == "process" else CACHE
    control: dict[str, Any] = {"mode": harness.control_plane.mode}
    if harness.control_plane.path is not None:
        control["path"] = control_path(harness.control_plane.path, inside.state)
    variant = next(item for item in resolved.variants if item.id == planned.variant_id)
    network: dict[str, Any] = {"mode_requested": resolved.runtime.network.mode}
    if resolved.runtime.network.mode == "allowlist_enforced":
        network["allowed_hosts"] = list(resolved.runtime.network.allowed_hosts)
    value: dict[str, Any] = {
        "schema_version": "trial_input_v1",
        "ids": ids,
        "task": ctx.task(planned.task_id),
        "bindings": variant.bindings,
        "design": {
            "sanitization_profile": resolved.design.sanitization_profile,
            "integration_level": harness.integration_level,
        },
        "runtime": {
            "paths": paths,
            "network": network,
            "control_plane": control,
            "budgets": resolved.runtime.budgets.to_json(),
            "timeouts": resolved.runtime.timeouts.to_json(),
        },
    }
    if ctx.linked is not None and ctx.linked.ext:
        value["ext"] = dict(ctx.linked.ext)
    if resolved.dataset.task_schema is not None:
        value["task_schema"] = resolved.dataset.task_schema
    return value


def control_path(declared: str, state: str) -> str:
    """The control file's place below the sandbox's state folder."""
    if not directly_below("/state/", declared):
        # A run from elsewhere could name any place; resolution refuses this for one's own experiments.
        raise BadInput(f"the control file must be directly below /state/, got {declared!r}", where="control_plane.path")
    return str(PurePosixPath(state) / PurePosixPath(declared).relative_to("/state"))
