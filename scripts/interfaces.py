"""Turns the interfaces that the founding specifications name into docs/interfaces.md: where each one is in the code.

The list below is the promise; the package is searched for it. What is not found stands under "Not built yet".
Run `make docs` after adding or moving one; tests/unit/test_interfaces.py checks the page against the code.
"""

from __future__ import annotations

import ast
import importlib
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
PAGE = TOP / "docs" / "interfaces.md"
NOT_BUILT = "## Not built yet"


@dataclass(frozen=True)
class Interface:
    """One name of a specification: the class, one member of it (or none), and what it turns into what."""

    specification: str
    owner: str
    member: str
    promise: str

    @property
    def name(self) -> str:
        return f"{self.owner}.{self.member}" if self.member else self.owner


SPEC = "Agent Lab v0.3 specification"
ACP = "ACP integration design"
CONTRACTS = "Core contracts"

LISTED: dict[str, list[tuple[str, str]]] = {
    SPEC: [
        ("ArtifactStore.put", "bytes or a stream -> artifact reference"),
        ("ArtifactStore.get", "artifact reference -> bytes, hashed again"),
        ("EventHasher.hash_prev", "previous hash and event line -> own hash"),
        ("Grades.emit", "grades -> grades.json"),
        ("HarnessExecutor.run", "trial input -> trial output"),
        ("HookCollector.collect", "hook file -> validated hook stream"),
        ("ControlPlane.write", "action -> control file"),
        ("TraceIngestor.ingest", "OTLP or trace manifest -> trace artifacts"),
        ("HarnessManifest.load", "path -> harness manifest"),
        ("ExperimentResolver.resolve", "experiment.yaml -> resolved experiment and digest"),
        ("TrialPlanner.plan", "resolved experiment -> trials in order"),
        ("ContainerRunner.run", "trial spec -> exit status"),
        ("ProfileEnforcer.check", "runtime state -> violations, or none"),
        ("NetworkProxy.start", "policy -> proxy handle"),
        ("NetworkEnforcer.apply", "mode, policy, proxy handle -> enforcement state"),
        ("EgressSelfTest.run", "policy, enforcement state -> artifact reference and result"),
        ("Recorder.record", "event and payload -> event line"),
        ("Replayer.replay", "event selector -> payload bytes"),
        ("CheckpointManager.save", "label, surfaces, runtime state -> checkpoint reference"),
        ("CheckpointManager.restore", "checkpoint reference -> runtime state"),
        ("IntegrationLevelResolver.derive", "evidence -> integration level"),
        ("AnalysisRunner.run", "resolved experiment, trials, metrics -> analysis/"),
        ("DiffBuilder.build", "task and two trials -> evidence-based diff"),
    ],
    ACP: [
        ("ACPClient.start", "starts the agent's process"),
        ("ACPClient.initialize", "agrees on version and capabilities"),
        ("ACPClient.create_session", "working directory -> session id"),
        ("ACPClient.load_session", "session id -> session"),
        ("ACPClient.send_prompt", "content blocks -> a turn"),
        ("ACPClient.cancel", "asks the agent to end the turn"),
        ("ACPClient.set_mode", "switches the agent's mode"),
        ("ACPClient.set_model", "switches the model"),
        ("ACPClient.execute_command", "slash command -> its output"),
        ("ACPClient.on_notification", "registers a reader of notifications"),
        ("ACPClient.close", "ends the agent's process"),
        ("ACPSession.send_message", "text -> a turn"),
        ("ACPSession.send_image", "image and caption -> a turn"),
        ("ACPSession.on_chunk", "registers a reader of message chunks"),
        ("ACPSession.on_tool_call", "registers a reader of tool calls"),
        ("ACPSession.on_tool_update", "registers a reader of tool updates"),
        ("ACPSession.on_turn_end", "registers a reader of turn ends"),
        ("ACPSession.on_commands_available", "registers a reader of slash commands"),
        ("ACPSession.on_compaction_status", "registers a reader of compaction status"),
        ("ACPSession.on_mcp_event", "registers a reader of MCP events"),
        ("ACPSession.cancel", "asks the agent to end the turn"),
        ("ACPSession.set_mode", "switches the agent's mode"),
        ("ACPSession.set_model", "switches the model"),
        ("AgentManager", "chats -> agent sessions, kept by session id"),
    ],
    CONTRACTS: [
        ("Runner.id", "names the runner"),
        ("Runner.type", "the ability it runs"),
        ("Runner.version", "its version, for provenance"),
        ("Runner.execute", "task and config -> run record"),
        ("Evaluator.id", "names the evaluator"),
        ("Evaluator.metrics", "the metrics it declares"),
        ("Evaluator.evaluate", "run record and task -> score records"),
    ],
}


def listed() -> list[Interface]:
    """Every interface of every specification, in their order."""
    found = []
    for specification, rows in LISTED.items():
        for name, promise in rows:
            owner, _, member = name.partition(".")
            found.append(Interface(specification, owner, member, promise))
    return found


@cache
def modules_by_class() -> dict[str, list[str]]:
    """Class name -> modules of the package that define it, the ones nearest to the top first."""
    found: dict[str, list[str]] = {}
    for path in (TOP / "labaudit").rglob("*.py"):
        parts = path.relative_to(TOP).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(module)
    return {name: sorted(modules, key=lambda module: (module.count("."), module)) for name, modules in found.items()}


def has_member(owner: object, member: str) -> bool:
    """Whether a class has the member, as an attribute or as a declared field."""
    if hasattr(owner, member):
        return True
    return any(member in vars(base).get("__annotations__", {}) for base in getattr(owner, "__mro__", ()))


def locate(interface: Interface) -> str | None:
    """`module:Class.member` where the interface is, or None when no importable class of that name has the member."""
    for module in modules_by_class().get(interface.owner, []):
        try:
            owner = getattr(importlib.import_module(module), interface.owner)
        except ImportError:
            continue
        if not interface.member or has_member(owner, interface.member):
            return f"{module}:{interface.name}"
    return None


def render() -> str:
    """The page as it should be for the code as it is."""
    places = [(interface, locate(interface)) for interface in listed()]
    lines = [
        "# Interfaces",
        "",
        "The specifications that this project started from name interfaces. This page says where each one is in the",
        "code. It is written by `make docs` and checked by a test: a name that moved or vanished is noticed.",
    ]
    for specification in LISTED:
        rows = [(i, place) for i, place in places if i.specification == specification and place]
        if rows:
            lines += ["", f"## {specification}", "", "| interface | code | turns what into what |", "|---|---|---|"]
            lines += [f"| `{i.name}` | `{place}` | {i.promise} |" for i, place in rows]
    missing = [i for i, place in places if place is None]
    lines += ["", NOT_BUILT, ""]
    if not missing:
        lines.append("Nothing: every interface above exists.")
    else:
        lines += ["| interface | named by | turns what into what |", "|---|---|---|"]
        lines += [f"| `{i.name}` | {i.specification} | {i.promise} |" for i in missing]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.path.insert(0, str(TOP))
    PAGE.write_text(render(), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(TOP)}")
