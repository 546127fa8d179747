"""`labaudit acp probe` and `labaudit acp run`: talk to an ACP agent on this machine, everything recorded."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import click

from labaudit.errors import BadInput

_TAKES_A_COMMAND = {"ignore_unknown_options": True}


def _options(function: Any) -> Any:
    """What both commands take."""
    for option in reversed(
        (
            click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="CMD..."),
            click.option(
                "--protocol", type=click.Choice(["auto", "acp", "text"]), default="auto", show_default=True,
                help="auto: ACP when the agent answers initialize, else plain text.",
            ),
            click.option(
                "--dialect", type=click.Choice(["v1", "kiro"]), default="v1", show_default=True, help="What we send."
            ),
            click.option(
                "--cwd", type=click.Path(path_type=Path), default=Path(), help="The agent's working directory."
            ),
            click.option(
                "--start-timeout", type=click.FloatRange(min=0.1), default=30.0, show_default=True,
                help="Seconds for each answer before the first prompt.",
            ),
            click.option("--mode-id", help="Ask for this mode."),
            click.option("--model", help="Ask for this model."),
            click.option(
                "--secret", "secrets", multiple=True, metavar="NAME", help="A variable whose value is never written."
            ),
            click.option("--lab-dir", type=click.Path(path_type=Path), help="The lab folder (default: .lab)."),
            click.option("--key", type=click.Path(path_type=Path), help="Sign with this key."),
            click.option("--no-sign", is_flag=True, help="Leave the record unsigned."),
            click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout."),
        )
    ):  # fmt: skip
        function = option(function)
    return function


@click.group()
def acp() -> None:
    """Talk to an ACP agent, transcript recorded.

    The agent runs on this machine with your rights and no sandbox. To benchmark one, use `runtime.harness.mode: acp` in
    an experiment.

    Example: labaudit acp run --prompt "List the files here" kiro-cli acp
    """


@acp.command(context_settings=_TAKES_A_COMMAND)
@_options
@click.pass_context
def probe(ctx: click.Context, /, **given: Any) -> None:
    """Start CMD, initialize, open a session, and say what the agent offers.

    Example: labaudit acp probe --json -- gemini --acp
    """
    from labaudit.bridge.talks import probe as do_probe

    lab, options, signer = _prepare(given)
    told = do_probe(lab, options, signer)
    if given["as_json"]:
        click.echo(json.dumps(told.as_json()))
    else:
        click.echo(f"protocol  {told.protocol} ({told.reason})")
        for part in (told.agent, told.session):
            for name, value in part.items():
                click.echo(f"{name}  {value if isinstance(value, str) else json.dumps(value)}")
    _finish(ctx, told)


@acp.command(context_settings=_TAKES_A_COMMAND)
@_options
@click.option("--prompt", required=True, help="What to say; - reads stdin.")
@click.option("--permissions", default="deny_all", show_default=True, help="deny_all, or kinds to allow: read,search")
@click.option("--timeout", type=click.FloatRange(min=0.1), default=300.0, show_default=True, help="Seconds in all.")
@click.option("--load", metavar="SESSION", help="Go on with this session of the agent's.")
@click.pass_context
def run(ctx: click.Context, /, **given: Any) -> None:
    """Send CMD one prompt and print its answer.

    Ends with 4 when the agent fails, answers the prompt with an error, or runs out of time; the record is sealed all
    the same. How the turn ended (end_turn, refusal, ...) is said on stderr.

    Example: labaudit acp run --prompt "List the files here" --permissions read kiro-cli acp
    """
    from labaudit.bridge.talks import converse

    prompt = _prompt_text(given["prompt"])
    lab, options, signer = _prepare(given)
    told = converse(lab, options, prompt, signer)
    if given["as_json"]:
        click.echo(json.dumps(told.as_json()))
    elif told.turn is not None:
        click.echo(told.turn["answer"])
        ending = told.turn.get("stop_reason") or told.turn.get("ended_by") or "failed"
        click.echo(f"turn ended: {ending}", err=True)
    _finish(ctx, told)


def _prompt_text(given: str) -> str:
    # Words of a command line that are no UTF-8 arrive as lone surrogates, and so would those of a pipe.
    raw = sys.stdin.buffer.read() if given == "-" else os.fsencode(given)
    try:
        prompt = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"the prompt is no UTF-8 text: byte {error.start + 1}", where="--prompt") from error
    if not prompt.strip():
        raise BadInput("the prompt is empty", where="--prompt")
    return prompt


def _prepare(given: dict[str, Any]) -> tuple[Any, Any, Any]:
    from labaudit.attest.signers import KeySigner
    from labaudit.attest.trust_store import ensure_keys
    from labaudit.bridge.talks import TalkOptions
    from labaudit.harnesses.acp.client.permissions import Policy
    from labaudit.harnesses.acp.trial.plan import parse_policy
    from labaudit.store.lab_folder import LabFolder

    lab = LabFolder.locate(given["lab_dir"])
    options = TalkOptions(
        command=tuple(given["command"]),
        cwd=given["cwd"],
        protocol=given["protocol"],
        dialect=given["dialect"],
        policy=parse_policy(given["permissions"]) if "permissions" in given else Policy(),
        timeout_s=given.get("timeout", 300.0),
        start_timeout_s=given["start_timeout"],
        mode_id=given["mode_id"],
        model=given["model"],
        load=given.get("load"),
        secrets=given["secrets"],
    )
    if given["no_sign"]:
        return lab, options, None
    keys = ensure_keys(lab, key_path=given["key"])
    if keys.made_now:
        click.echo(f"made a signing key: {keys.path}", err=True)
    return lab, options, KeySigner(keys.signing)


def _finish(ctx: click.Context, told: Any) -> None:
    click.echo(f"recorded in {told.session_folder}", err=True)
    if told.failure is not None:
        click.echo(f"labaudit: {told.failure}", err=True)
        ctx.exit(told.failure.exit_code)
