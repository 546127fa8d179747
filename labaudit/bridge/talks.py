"""A command and a prompt to one recorded conversation: `labaudit acp probe` and `labaudit acp run`."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from labaudit.attest.signers import Signer
from labaudit.bridge.agent_log import AgentLog
from labaudit.bridge.recording import SessionPlan, SessionRecorder
from labaudit.bridge.watching import (
    record_agent,
    record_failure,
    record_prompt,
    record_setting,
    turn_payload,
    watch,
)
from labaudit.errors import BadInput, EnvironmentLacks
from labaudit.harnesses.acp.client.client import ACPClient, agent_info
from labaudit.harnesses.acp.client.detect import Detection, Protocol, detect
from labaudit.harnesses.acp.client.driving import drive_turn
from labaudit.harnesses.acp.client.failures import AgentFailure
from labaudit.harnesses.acp.client.link import ProcessLink
from labaudit.harnesses.acp.client.permissions import Policy, by_policy
from labaudit.harnesses.acp.client.session import ACPSession
from labaudit.harnesses.acp.client.text_agent import TextAgent
from labaudit.harnesses.acp.wire.dialect import Dialect, text_block
from labaudit.harnesses.acp.wire.text import fit, fit_value, object_at
from labaudit.store.lab_folder import LabFolder

READY_S = 5.0


@dataclass(frozen=True)
class TalkOptions:
    """How to talk to an agent on this machine. The agent is not sandboxed here; an experiment's is."""

    command: tuple[str, ...]
    cwd: Path = Path()
    protocol: Protocol = "auto"
    dialect: Dialect = "v1"
    policy: Policy = field(default_factory=Policy)
    timeout_s: float = 300.0
    start_timeout_s: float = 30.0
    mode_id: str | None = None
    model: str | None = None
    load: str | None = None
    secrets: Sequence[str] = ()
    """Names of environment variables whose values must not be written anywhere."""


@dataclass
class Told:
    """What came of a conversation; the same for both commands."""

    protocol: str
    reason: str
    session_folder: Path
    manifest_digest: str = ""
    agent: dict[str, object] = field(default_factory=dict)
    session: dict[str, object] = field(default_factory=dict)
    turn: dict[str, object] | None = None
    failure: AgentFailure | None = None
    defects: dict[str, int] = field(default_factory=dict)

    def as_json(self) -> dict[str, object]:
        """One JSON object."""
        failure = {"kind": self.failure.kind, "message": self.failure.what} if self.failure else None
        return {
            "protocol": self.protocol,
            "reason": self.reason,
            "agent": self.agent,
            "session": self.session,
            "turn": self.turn,
            "failure": failure,
            "defects": self.defects,
            "session_folder": str(self.session_folder),
            "manifest_digest": self.manifest_digest,
        }


def probe(lab: LabFolder, options: TalkOptions, signer: Signer | None) -> Told:
    """Initialize and open a session, send nothing, and say what the agent offers."""
    return _talk(lab, options, signer, None)


def converse(lab: LabFolder, options: TalkOptions, prompt: str, signer: Signer | None) -> Told:
    """One prompt, one turn."""
    return _talk(lab, options, signer, prompt)


def _talk(lab: LabFolder, options: TalkOptions, signer: Signer | None, prompt: str | None) -> Told:
    if not options.command:
        raise BadInput("no command was given", hint="for example: labaudit acp probe kiro-cli acp")
    if not options.cwd.is_dir():
        raise BadInput("is no directory", where=str(options.cwd), hint="--cwd names the agent's working directory")
    hidden = secret_values(options.secrets)
    found = detect(
        options.command, options.protocol, cwd=options.cwd, dialect=options.dialect, timeout_s=options.start_timeout_s
    )
    _refuse_what_text_lacks(options, found)
    plan = SessionPlan(
        kind="acp_run" if prompt is not None else "acp_probe",
        command=found.command,
        protocol=found.protocol,
        dialect=options.dialect,
        permissions=options.policy,
        secrets=hidden,
    )
    recorder = SessionRecorder(lab, plan, signer=signer)
    told = Told(found.protocol, found.reason, recorder.folder.path)
    if found.protocol == "text":
        _talk_text(recorder, options, found, prompt, told)
    else:
        _talk_acp(recorder, options, found, prompt, told)
    return told


def secret_values(names: Sequence[str]) -> dict[str, str]:
    """The values of the variables named. One that is not set may be a misspelt one, whose value would be written."""
    for name in names:
        if not os.environ.get(name):
            hint = "export it, or leave the option out"
            raise EnvironmentLacks(f"the secret {name} is not set", where="--secret", hint=hint)
    return {name: os.environ[name] for name in names}


def _refuse_what_text_lacks(options: TalkOptions, found: Detection) -> None:
    """Text has no sessions, modes or models: an option that would do nothing is an error, and nothing is sent."""
    asked = {"--load": options.load, "--mode-id": options.mode_id, "--model": options.model}
    named = [name for name, value in asked.items() if value is not None]
    if found.protocol == "text" and named:
        raise BadInput(
            f"an agent in text mode knows nothing of {named[0]}", where=" ".join(found.command), hint=found.reason
        )


def _talk_acp(
    recorder: SessionRecorder, options: TalkOptions, found: Detection, prompt: str | None, told: Told
) -> None:
    log = AgentLog(options.dialect)
    client = ACPClient(
        options.cwd.resolve(),
        found.command,
        dialect=options.dialect,
        env=log.environment,
        transcript=recorder.transcript,
        on_permission=by_policy(options.policy),
        request_timeout_s=options.start_timeout_s,
    )
    try:
        client.start()
        client.initialize()
        record_agent(recorder, client)
        told.agent = describe_agent(client)
        session = _open(recorder, client, options)
        if prompt is not None:
            _prompt(recorder, session, options, prompt, told)
        told.session = describe_session(session)
    except AgentFailure as failure:
        told.failure = failure
        record_failure(recorder, failure)
    finally:
        told.defects = client.defects
        client.close()
        redactor = recorder.redactor
        told.manifest_digest = recorder.seal(client.stderr.captured(redactor), log.take(redactor))


def _open(recorder: SessionRecorder, client: ACPClient, options: TalkOptions) -> ACPSession:
    cwd = str(options.cwd.resolve())
    if options.load is not None:
        client.load_session(options.load, cwd)
        session = client.session(options.load)
        recorder.event("acp.session_loaded", {"acp_session_id": options.load, "replayed_updates": session.replayed})
    else:
        session = client.session(client.create_session(cwd))
        recorder.event("acp.session_created", {"acp_session_id": session.session_id})
    watch(recorder, session)
    if options.mode_id is not None:
        record_setting(recorder, "mode", session.set_mode(options.mode_id))
    if options.model is not None:
        record_setting(recorder, "model", session.set_model(options.model))
    return session


def _prompt(
    recorder: SessionRecorder, session: ACPSession, options: TalkOptions, prompt: str, told: Told
) -> None:
    blocks = [text_block(prompt)]
    record_prompt(recorder, session.session_id, blocks)
    driven = drive_turn(session, blocks, deadline=time.monotonic() + options.timeout_s)
    told.turn = {**turn_payload(driven.result), "stopped": driven.stopped}
    if driven.stopped is not None and driven.result.failure is None:
        raise AgentFailure("timeout", f"the turn was cancelled after {options.timeout_s:g} s")
    if driven.result.failure is not None:
        raise driven.result.failure


def _talk_text(
    recorder: SessionRecorder, options: TalkOptions, found: Detection, prompt: str | None, told: Told
) -> None:
    agent = TextAgent(ProcessLink(found.command, cwd=options.cwd), transcript=recorder.transcript)
    try:
        ready = agent.wait_ready(min(READY_S, options.start_timeout_s))
        told.agent = {"name": "", "version": "", "prompt_seen": ready}
        if prompt is not None:
            _ask_text(recorder, agent, options, prompt, told)
        elif agent.ended:
            raise AgentFailure("exited", "the agent ended before it was asked anything", hint="try --protocol acp")
    except AgentFailure as failure:
        told.failure = failure
        record_failure(recorder, failure)
    finally:
        agent.close()
        told.manifest_digest = recorder.seal(agent.stderr.captured(recorder.redactor))


def _ask_text(recorder: SessionRecorder, agent: TextAgent, options: TalkOptions, prompt: str, told: Told) -> None:
    recorder.event("prompt.sent", {"text": prompt})
    turn = agent.ask(prompt, options.timeout_s, last=True)
    told.turn = {
        "answer": turn.text,
        "answer_cut": turn.cut,
        "ended_by": turn.ended_by,
        "trust_questions_denied": turn.denied,
    }
    recorder.event("turn.ended", told.turn, source="hooks")
    if turn.ended_by == "timeout":
        raise AgentFailure("timeout", f"no end of the answer within {options.timeout_s:g} s")
    if turn.ended_by == "exit":
        badly = agent.failed_ending()
        if badly:
            raise AgentFailure("exited", f"the agent ended ({badly})")
        if not turn.text.strip():
            raise AgentFailure("exited", "the agent ended without a word")


def describe_agent(client: ACPClient) -> dict[str, object]:
    """What the agent said of itself."""
    name, version = agent_info(client.agent)
    return {
        "name": name,
        "version": version,
        "protocol_version": client.agent.get("protocolVersion"),
        "capabilities": fit_value(object_at(client.agent, "agentCapabilities")),
        "auth_methods": _names(client.agent.get("authMethods")),
    }


def describe_session(session: ACPSession) -> dict[str, object]:
    """What the session offers and how it stands."""
    standing = session.standing
    options: list[Mapping[str, object]] = [
        {"id": option.id, "category": option.category, "current": option.current, "values": list(option.values)}
        for option in standing.options
    ]
    return {
        "acp_session_id": fit(session.session_id, 500),
        "mode": standing.now.get("mode"),
        "model": standing.now.get("model"),
        "options": options,
        "commands": [command.name for command in session.commands],
        "settings": {name: setting.as_json() for name, setting in standing.asked.items()},
    }


def _names(items: object) -> list[str]:
    listed = items if isinstance(items, list) else []
    return [fit(item.get("id"), 200) for item in listed if isinstance(item, dict)][:100]
