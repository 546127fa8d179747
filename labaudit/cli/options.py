"""Options that several commands share."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def lab_option(command: Command) -> Command:
    """`--lab-dir`: the lab folder."""
    option = click.option(
        "--lab-dir", metavar="DIR", help="The lab folder [default: LABAUDIT_DIR, else .lab].", default=None
    )
    return option(command)


def json_option(command: Command) -> Command:
    """`--json`: data on stdout, talk on stderr."""
    return click.option("--json", "as_json", is_flag=True, help="Data as JSON on stdout.")(command)


def print_json(value: object) -> None:
    """One JSON document on stdout."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True))
