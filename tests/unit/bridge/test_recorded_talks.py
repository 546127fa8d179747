"""`labaudit acp` as people run it, and the records it leaves."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from labaudit.attest.keys import PublicKey
from labaudit.bridge.recording import SessionPlan, SessionRecorder, close_interrupted
from labaudit.cli import labaudit
from labaudit.errors import LabauditError
from labaudit.harnesses.acp.client.permissions import Policy
from labaudit.records.schema_registry import validate
from labaudit.store.event_log import read_events
from labaudit.store.lab_folder import LabFolder
from labaudit.store.session_folder import SessionFolder
from labaudit.verify.request import Anchors, Request
from labaudit.verify.targets import verify_target
from tests.unit.acp.talk import AGENT, HERE

PLAN = SessionPlan("acp_run", ("agent",), "acp", "v1", Policy())


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def acp(lab: Path, *words: str, env: dict[str, str] | None = None) -> Done:
    """The command in this process, with errors turned into exit codes as the console script does."""
    arguments = ["acp", words[0], "--lab-dir", str(lab), *words[1:]]
    result = CliRunner().invoke(labaudit, arguments, env=env)
    if isinstance(result.exception, LabauditError):
        return Done(result.exception.exit_code, result.stdout, str(result.exception))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return Done(result.exit_code, result.stdout, result.stderr)


def only_record(lab: Path) -> SessionFolder:
    (path,) = (lab / "sessions").iterdir()
    return SessionFolder(path)


def verdict(record: SessionFolder, lab: Path) -> str:
    keys = (PublicKey.load(lab / "keys" / "labaudit.pub"),)
    return verify_target(record.path, Request(Anchors(keys=keys))).verdict


def scripted(behaviour: str) -> list[str]:
    return ["--protocol", "acp", "--", sys.executable, str(AGENT), behaviour]


def test_a_run_prints_the_answer_and_leaves_a_record_that_verifies(tmp_path: Path) -> None:
    lab = tmp_path / ".lab"
    done = acp(lab, "run", "--prompt", "what is up", *scripted("echo"))
    assert (done.returncode, done.stdout) == (0, "what is up\n"), done.stderr
    record = only_record(lab)
    assert verdict(record, lab) == "verified"
    events = list(read_events(record.events))
    assert [event["event_type"] for event in events] == [
        "session.opened", "agent.initialized", "acp.session_created", "prompt.sent", "turn.ended", "trial.sealed",
    ]  # fmt: skip
    assert all(validate("event_envelope_v1", event) == [] for event in events)
    head = json.loads(record.session.read_text())
    assert (head["kind"], head["protocol"], head["permissions"]) == ("acp_run", "acp", "deny_all")


def test_a_probe_says_what_the_agent_offers_and_sends_no_prompt(tmp_path: Path) -> None:
    lab = tmp_path / ".lab"
    done = acp(lab, "probe", "--json", "--no-sign", "--model", "m2", *scripted("options"))
    told: dict[str, Any] = json.loads(done.stdout)
    assert told["agent"]["name"] == "scripted"
    assert told["session"]["mode"] == "ask"
    assert told["session"]["settings"]["model"]["confirmed"] == "m2"
    assert b"session/prompt" not in only_record(lab).transcript.read_bytes()
    report = verify_target(only_record(lab).path, Request(integrity_only=True))
    assert report.verdict == "verified"
    assert verify_target(only_record(lab).path, Request()).verdict == "policy_unmet"


@pytest.mark.parametrize(
    ("behaviour", "kind"), [("exits", "exited"), ("never", "timeout"), ("init_error", "auth_required")]
)
def test_an_agent_that_fails_is_exit_4_and_the_record_is_sealed(behaviour: str, kind: str, tmp_path: Path) -> None:
    lab = tmp_path / ".lab"
    done = acp(lab, "run", "--json", "--prompt", "x", "--timeout", "0.5", *scripted(behaviour))
    assert done.returncode == 4
    assert json.loads(done.stdout)["failure"]["kind"] == kind
    assert verdict(only_record(lab), lab) == "verified"


def test_permissions_are_those_of_the_command_line(tmp_path: Path) -> None:
    done = acp(tmp_path / ".lab", "run", "--prompt", "x", "--permissions", "edit", *scripted("asks"))
    assert done.stdout == "permission: yes\n"
    wrong = acp(tmp_path / ".lab", "run", "--prompt", "x", "--permissions", "all", *scripted("asks"))
    assert wrong.returncode == 2
    assert "no kind of tool call" in wrong.stderr


def test_a_secret_is_withheld_from_every_file(tmp_path: Path) -> None:
    secret = "a-very-secret-value-42"
    words = ["run", "--prompt", "tell", "--secret", "MODEL_API_KEY", *scripted("secrets")]
    done = acp(tmp_path / ".lab", *words, env={"MODEL_API_KEY": secret})
    assert secret in done.stdout, "the person who asked sees the answer as it is"
    files = [path for path in (tmp_path / ".lab").rglob("*") if path.is_file()]
    assert [path for path in files if secret.encode() in path.read_bytes()] == []
    assert json.loads(only_record(tmp_path / ".lab").session.read_text())["withheld"] == ["MODEL_API_KEY"]


def test_kiros_own_log_is_part_of_the_record_without_secrets(tmp_path: Path) -> None:
    lab = tmp_path / ".lab"
    words = ["run", "--dialect", "kiro", "--prompt", "x", "--secret", "MODEL_API_KEY", *scripted("kiro")]
    done = acp(lab, *words, env={"MODEL_API_KEY": "a-very-secret-value-42"})
    assert (done.returncode, done.stdout) == (0, "kiro says x\n")
    assert only_record(lab).agent_log.read_text() == "level debug key [secret MODEL_API_KEY withheld]\n"
    assert verdict(only_record(lab), lab) == "verified"


def test_a_text_agent_is_talked_to_honestly(tmp_path: Path) -> None:
    agent = tmp_path / "chat.sh"
    agent.write_text('printf "> "; read -r line; printf "\\033[1mheard %s\\033[0m\\n" "$line"\n')
    done = acp(tmp_path / ".lab", "run", "--json", "--start-timeout", "1", "--prompt", "hello", "sh", str(agent))
    told = json.loads(done.stdout)
    assert (told["protocol"], told["turn"]["answer"]) == ("text", "heard hello")
    assert json.loads(only_record(tmp_path / ".lab").session.read_text())["protocol"] == "text"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("cat > /dev/null", "ended without a word"),
        ("cat > /dev/null; echo no model is set up; exit 3", "the agent ended (exit code 3)"),
        ("cat > /dev/null; echo half; kill -9 $$", "the agent ended (signal 9)"),
    ],
)
def test_a_text_agent_that_fails_is_exit_4_and_the_record_is_sealed(script: str, said: str, tmp_path: Path) -> None:
    lab = tmp_path / ".lab"
    words = ("--start-timeout", "0.3", "--protocol", "text", "--prompt", "hello", "--", "sh", "-c", script)
    done = acp(lab, "run", *words)
    assert done.returncode == 4
    assert said in done.stderr
    assert verdict(only_record(lab), lab) == "verified"


def test_a_probe_of_a_program_that_just_ends_finds_no_agent(tmp_path: Path) -> None:
    done = acp(tmp_path / ".lab", "probe", "true")
    assert done.returncode == 4
    assert "ended before it was asked anything" in done.stderr


def test_a_prompt_is_read_from_standard_input_as_utf_8(tmp_path: Path) -> None:
    words = ["acp", "run", "--lab-dir", str(tmp_path / ".lab"), "--protocol", "text", "--start-timeout", "0.3"]
    good = CliRunner().invoke(labaudit, [*words, "--prompt", "-", "cat"], input="grüß dich".encode())
    assert (good.exit_code, good.stdout) == (0, "grüß dich\n")
    bad = CliRunner().invoke(labaudit, [*words, "--prompt", "-", "cat"], input=b"\xff\xfe")
    assert isinstance(bad.exception, LabauditError)
    assert bad.exception.exit_code == 2


@pytest.mark.acceptance
def test_an_agent_of_the_official_sdk_is_detected(tmp_path: Path) -> None:
    done = acp(tmp_path / ".lab", "run", "--prompt", "echo me", sys.executable, str(HERE / "agents" / "sdk_echo.py"))
    assert (done.returncode, done.stdout) == (0, "echo me\n"), done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "--prompt", "x"], "CMD"),
        (["run", "--prompt", " ", "sh"], "the prompt is empty"),
        (["probe", "--cwd", "/nonexistent", "sh"], "is no directory"),
        (["probe", "--protocol", "smoke", "sh"], "smoke"),
        (["run", "--prompt", "caf\udce9", "sh"], "no UTF-8 text: byte 4"),
        (["run", "--prompt", "x", "--permissions", "everything", "sh"], "is no kind of tool call"),
        (["run", "--prompt", "x", "--load", "s1", "--protocol", "text", "cat"], "knows nothing of --load"),
        (["probe", "--model", "small", "--protocol", "text", "cat"], "knows nothing of --model"),
        (["probe", "--key", "/nonexistent/key", "sh"], "no such file"),
    ],
)
def test_wrong_usage_is_exit_2_in_one_sentence(words: list[str], said: str, tmp_path: Path) -> None:
    done = acp(tmp_path / ".lab", *words)
    assert done.returncode == 2
    assert said in done.stderr


def test_a_secret_that_is_not_set_is_exit_4_since_it_may_be_misspelt(tmp_path: Path) -> None:
    done = acp(tmp_path / ".lab", "run", "--prompt", "x", "--secret", "MODEL_API_KYE", "cat")
    assert done.returncode == 4
    assert "the secret MODEL_API_KYE is not set" in done.stderr
    assert not (tmp_path / ".lab" / "sessions").exists()


def test_a_command_that_is_not_there_is_exit_4(tmp_path: Path) -> None:
    done = acp(tmp_path / ".lab", "probe", "/nonexistent/agent")
    assert done.returncode == 4
    assert "cannot be started" in done.stderr


def test_a_record_in_use_is_not_closed_by_another_start(tmp_path: Path) -> None:
    lab = LabFolder(tmp_path / ".lab")
    recorder = SessionRecorder(lab, PLAN, signer=None)
    recorder.event("prompt.sent", {"text": "x"})
    assert close_interrupted(lab, None) == []
    recorder.seal()
    assert close_interrupted(lab, None) == []
    recorder.event("late", {"text": "x"})
    assert verify_target(recorder.folder.path, Request(integrity_only=True)).verdict == "verified"


def test_a_record_left_open_is_closed_with_its_interruption_said(tmp_path: Path) -> None:
    lab = LabFolder(tmp_path / ".lab")
    code = f"""
import os
from pathlib import Path
from labaudit.bridge.recording import SessionPlan, SessionRecorder
from labaudit.store.lab_folder import LabFolder
plan = SessionPlan("chat", ("a",), "acp", "v1", "ask")
SessionRecorder(LabFolder(Path({str(lab.path)!r})), plan, signer=None).event("prompt.sent", {{"text": "x"}})
os._exit(9)
"""
    subprocess.run([sys.executable, "-c", code], check=False)
    record = only_record(lab.path)
    assert verify_target(record.path, Request(integrity_only=True)).verdict == "malformed"
    assert close_interrupted(lab, None) == [record.session_id]
    types = [event["event_type"] for event in read_events(record.events)]
    assert types == ["session.opened", "prompt.sent", "session.interrupted", "trial.sealed"]
    assert verify_target(record.path, Request(integrity_only=True)).verdict == "verified"


@pytest.mark.parametrize(
    ("environment", "words", "said"),
    [
        ({"TELEGRAM_BOT_TOKEN": ""}, ["--allow", "1"], "the bot token is not set"),
        ({"TELEGRAM_BOT_TOKEN": "1:abcdef"}, [], "no chat is allowed"),
        ({"TELEGRAM_BOT_TOKEN": "1:abcdef"}, ["--allow", "me"], "is no chat id"),
        ({"TELEGRAM_BOT_TOKEN": "1:abcdef"}, ["--allow", "1", "--api-url", "http://bot.example"], "over an open line"),
        ({"TELEGRAM_BOT_TOKEN": "1:abc def"}, ["--allow", "1"], "not one word"),
        ({"TELEGRAM_BOT_TOKEN": "1:abcdef"}, ["--allow", "1", "--cwd", "/nonexistent"], "is no directory"),
        ({"TELEGRAM_BOT_TOKEN": "1:abcdef"}, ["--allow", "1", "--agent", "a=cat"], "two agents are named 'a'"),
        ({"TELEGRAM_BOT_TOKEN": "1:abcdef"}, ["--allow", "1", "--agent", "cat"], "is no NAME=CMD"),
        ({"TELEGRAM_BOT_TOKEN": "1:abcdef"}, ["--allow", "1", "--agent", 'b="cat'], "cannot be split into words"),
    ],
)
def test_the_bridge_does_not_start_on_wrong_options(
    environment: dict[str, str], words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # In this process the log belongs to the test runner.
    monkeypatch.setattr("labaudit.bridge.telegram_run.quiet_logging", lambda redactor: None)
    arguments = ["bridge", "telegram", "--lab-dir", str(tmp_path / ".lab"), "--agent", "a=true", *words]
    result = CliRunner().invoke(labaudit, arguments, env=environment)
    assert isinstance(result.exception, LabauditError)
    assert result.exception.exit_code == 2
    assert said in str(result.exception)
    assert "abcdef" not in str(result.exception)
