"""`labaudit bridge telegram`: the recorded chat bridge."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from labaudit.errors import BadInput


@click.group()
def bridge() -> None:
    """The recorded chat bridge: talk to an agent from a chat, every message and approval on record.

    Example: labaudit bridge telegram --agent kiro="kiro-cli acp" --allow 123456789
    """


@bridge.command()
@click.option(
    "--agent", "agents", multiple=True, required=True, metavar="NAME=CMD", help="An agent; the first is the default."
)
@click.option("--allow", "allowed", multiple=True, metavar="CHAT_ID", help="A chat that may talk; nobody else may.")
@click.option("--cwd", type=click.Path(path_type=Path), default=Path(), help="The agents' working directory.")
@click.option("--protocol", type=click.Choice(["auto", "acp", "text"]), default="auto", show_default=True)
@click.option("--dialect", type=click.Choice(["v1", "kiro"]), default="v1", show_default=True)
@click.option("--api-url", envvar="LABAUDIT_TELEGRAM_API", help="Another Bot API server (https, or loopback).")
@click.option("--permission-timeout", type=click.FloatRange(min=1), default=300.0, show_default=True)
@click.option("--turn-timeout", type=click.FloatRange(min=1), default=3600.0, show_default=True)
@click.option("--messages-per-minute", type=click.IntRange(min=1), default=20, show_default=True)
@click.option("--edit-every", type=click.FloatRange(min=0.05), default=1.0, show_default=True, help="Seconds.")
@click.option("--secret", "secrets", multiple=True, metavar="NAME", help="A variable whose value is never written.")
@click.option("--lab-dir", type=click.Path(path_type=Path), help="The lab folder (default: .lab).")
@click.option("--key", type=click.Path(path_type=Path), help="Sign with this key.")
@click.option("--no-sign", is_flag=True, help="Leave the records unsigned.")
def telegram(**given: Any) -> None:
    """Run a Telegram bot until Ctrl-C. The token is read from TELEGRAM_BOT_TOKEN.

    The agents run on this machine with your rights and no sandbox. Each chat's conversation is recorded in
    .lab/sessions and sealed when its agent ends; `labaudit verify` checks it.

    Example: TELEGRAM_BOT_TOKEN=... labaudit bridge telegram --agent kiro="kiro-cli acp" --allow 123456789
    """
    from labaudit.bridge.telegram_run import run_telegram

    run_telegram(
        agents=[_agent(text) for text in given.pop("agents")],
        log=lambda text: click.echo(f"labaudit: {text}", err=True),
        **given,
    )


def _agent(text: str) -> tuple[str, tuple[str, ...]]:
    name, equals, command = text.partition("=")
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise BadInput(f"the command cannot be split into words: {error}", where="--agent") from error
    if not equals or not name.strip() or not words:
        raise BadInput(f"{text[:80]!r} is no NAME=CMD", where="--agent", hint='--agent kiro="kiro-cli acp"')
    return name.strip(), words
