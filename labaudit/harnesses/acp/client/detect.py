"""A command to the protocol it speaks: ACP when it answers `initialize` in time, text otherwise, with the reason."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from labaudit.harnesses.acp.client.client import ACPClient
from labaudit.harnesses.acp.client.failures import AgentFailure
from labaudit.harnesses.acp.client.link import ProcessLink, environment_without
from labaudit.harnesses.acp.wire.dialect import Dialect

Protocol = Literal["auto", "acp", "text"]


@dataclass(frozen=True)
class Detection:
    """How an agent will be talked to, and why."""

    protocol: Literal["acp", "text"]
    command: tuple[str, ...]
    reason: str
    agent: Mapping[str, object] = field(default_factory=dict)


def supports_acp(
    command: Sequence[str] = ("kiro-cli",), timeout_s: float = 10.0, *, withheld: Sequence[str] = ()
) -> bool:
    """Whether `<command> acp --help` ends well: the sign of an agent with an ACP subcommand."""
    try:
        done = subprocess.run(
            [*command, "acp", "--help"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_s,
            check=False,
            env=environment_without(withheld),
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def detect(
    command: Sequence[str],
    protocol: Protocol = "auto",
    *,
    cwd: str | Path = ".",
    dialect: Dialect = "v1",
    timeout_s: float = 10.0,
    withheld: Sequence[str] = (),
    make_client: Callable[[Sequence[str]], ACPClient] | None = None,
) -> Detection:
    """For `auto`: the `acp` subcommand if it exists and answers, else the command itself, else text mode.

    An agent that is only asked what it speaks must not see the variables `withheld` either.
    """
    if protocol == "acp":
        return Detection("acp", tuple(command), "acp was asked for by name")
    if protocol == "text":
        return Detection("text", tuple(command), "text was asked for by name")

    def plain_client(tried: Sequence[str]) -> ACPClient:
        link = ProcessLink(tried, cwd=cwd, withheld=withheld)
        return ACPClient(cwd, tried, dialect=dialect, link=lambda: link)

    make = make_client or plain_client
    reasons = []
    for tried in _candidates(command, timeout_s, withheld):
        agent = _initialize(make(tried), timeout_s)
        if isinstance(agent, dict):
            return Detection("acp", tuple(tried), f"`{' '.join(tried)}` answered initialize", agent)
        reasons.append(f"`{' '.join(tried)}`: {agent}")
    return Detection("text", tuple(command), "no ACP: " + "; ".join(reasons))


def _candidates(command: Sequence[str], timeout_s: float, withheld: Sequence[str]) -> list[Sequence[str]]:
    own = list(command)
    # A subcommand belongs to a bare program's name; behind arguments it would be one more argument.
    has_subcommand = len(own) == 1 and supports_acp(own, timeout_s, withheld=withheld)
    return [[*own, "acp"], own] if has_subcommand else [own]


def _initialize(client: ACPClient, timeout_s: float) -> dict[str, object] | str:
    try:
        client.start()
        return client.initialize(timeout_s)
    except AgentFailure as failure:
        if failure.kind == "not_started":
            raise
        return failure.what
    finally:
        client.close(0.5)
