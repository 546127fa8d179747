"""A trial's input and the resolved spec to what will be said to the agent, and under which rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from labaudit.errors import BadInput
from labaudit.harnesses.acp.client.permissions import Policy
from labaudit.harnesses.acp.trial.mcp import mcp_servers
from labaudit.harnesses.acp.trial.prompts import render, render_prompts
from labaudit.harnesses.acp.wire.dialect import Dialect
from labaudit.records.resolved import Variant
from labaudit.records.resolved_runtime import ResolvedAllowOnce, ResolvedHarness
from labaudit.records.trial_input import Budgets

UNSEEN_TOKENS = "max_total_tokens cannot be enforced: ACP shows no token counts"


@dataclass(frozen=True)
class ConversationPlan:
    """Everything that is fixed before the agent starts."""

    prompts: tuple[str, ...]
    cwd: str
    policy: Policy
    dialect: Dialect
    mode_id: str | None
    model: str | None
    mcp_servers: tuple[dict[str, object], ...]
    max_steps: int | None
    max_tool_calls: int | None
    notes: tuple[str, ...]


def plan_conversation(
    harness: ResolvedHarness, budgets: Budgets, trial_input: Mapping[str, object], cwd: str
) -> ConversationPlan:
    """The plan of one trial; BadInput when a template names what its task does not have."""
    values = {"task": trial_input["task"], "bindings": trial_input["bindings"]}

    def filled(template: str | None, where: str) -> str | None:
        return render(template, values, where=where) if template is not None else None

    return ConversationPlan(
        prompts=render_prompts(harness.prompt, values),
        cwd=cwd,
        policy=policy_of(harness),
        dialect=harness.dialect or "v1",
        mode_id=filled(harness.mode_id, "runtime.harness.mode_id"),
        model=filled(harness.model, "runtime.harness.model"),
        mcp_servers=tuple(mcp_servers(harness.mcp_servers)),
        max_steps=budgets.max_steps,
        max_tool_calls=budgets.max_tool_calls,
        notes=(UNSEEN_TOKENS,) if budgets.max_total_tokens is not None else (),
    )


def check_templates(
    harness: ResolvedHarness, variants: Iterable[Variant], tasks: Iterable[Mapping[str, object]]
) -> None:
    """BadInput when a template names nothing in some trial; found before the first one runs."""
    arms = list(variants)
    for task in tasks:
        for variant in arms:
            given = {"task": task, "bindings": variant.bindings}
            try:
                plan_conversation(harness, Budgets(), given, "/workspace")
            except BadInput as error:
                which = f"task {str(task.get('id', '?'))[:80]}, variant {variant.id}"
                raise BadInput(f"{error.what} ({which})", where=error.where, hint=error.hint) from error


def policy_of(harness: ResolvedHarness) -> Policy:
    """`deny_all` unless the spec allows kinds by name."""
    given = harness.permissions
    return Policy(frozenset(given.allow_once)) if isinstance(given, ResolvedAllowOnce) else Policy()


def parse_policy(text: str) -> Policy:
    """A policy as the command line writes it: `deny_all`, or kinds with commas between them."""
    from labaudit.harnesses.acp.wire.updates import KINDS

    if text == "deny_all":
        return Policy()
    kinds = [kind.strip() for kind in text.removeprefix("allow_once:").split(",") if kind.strip()]
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown or not kinds:
        named = unknown[0] if unknown else text
        raise BadInput(f"{named!r} is no kind of tool call", where="--permissions", hint=f"known: {', '.join(KINDS)}")
    return Policy(frozenset(kinds))


def agent_environment(harness: ResolvedHarness) -> dict[str, str]:
    """Variables that make a Kiro agent's own log part of the evidence; the author's `env` goes over them."""
    if harness.dialect != "kiro":
        return {}
    return {"KIRO_LOG_LEVEL": "debug", "KIRO_CHAT_LOG_FILE": "/out/kiro-chat.log"}
