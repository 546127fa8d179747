"""`labaudit schema list|show` and `labaudit schema-validate`: the registry of schemas, and documents against it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import BinaryIO

import click

from labaudit import resources
from labaudit.errors import BadInput
from labaudit.records import document_check, schema_registry
from labaudit.store import atomic


@click.group()
def schema() -> None:
    """List or show the registry's schemas.

    Example: labaudit schema show trial_output_v1
    """


@schema.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON array on stdout.")
def list_schemas(as_json: bool) -> None:
    """List every schema.

    Example: labaudit schema list --json
    """
    rows = [(name, schema_registry.load_schema(name)) for name in schema_registry.schema_names()]
    if as_json:
        click.echo(json.dumps([{"name": name, "id": doc["$id"], "title": doc["title"]} for name, doc in rows]))
        return
    width = max(len(name) for name, _ in rows)
    for name, doc in rows:
        click.echo(f"{name:<{width}}  {doc['title']}")


@schema.command("show")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Accepted for uniformity: a schema is JSON in any case.")
def show_schema(name: str, as_json: bool) -> None:
    """Print one schema as it stands in schemas/.

    Example: labaudit schema show hook_events_v1
    """
    click.echo(resources.read_schema(name).decode(), nl=False)


@click.command("schema-validate")
@click.argument("schema_name", metavar="SCHEMA")
@click.argument("file", metavar="FILE")
@click.option("--rules", is_flag=True, help="Also the numbered rules that a schema cannot say.")
@click.option("--json", "as_json", is_flag=True, help="One JSON report on stdout.")
@click.pass_context
def schema_validate(ctx: click.Context, schema_name: str, file: str, rules: bool, as_json: bool) -> None:
    """Check FILE (or - for stdin) against SCHEMA.

    A .jsonl file is checked line by line. Ends with 1 when a document breaks the schema and with 2 when something is
    no JSON, or when there is no such schema or file.

    Example: labaudit schema-validate hook_events_v1 harness_events.jsonl
    """
    name = resources.schema_name(schema_name)
    with open_input(file) as stream:
        per_line = document_check.holds_one_per_line(name, file)
        report = document_check.check_documents(name, stream, per_line=per_line, with_rules=rules)
    if as_json:
        click.echo(json.dumps({"file": file, **report.as_json()}))
    else:
        _say(file, report)
    ctx.exit(report.exit_code)


def open_input(file: str) -> BinaryIO:
    """A file's bytes, or stdin's for `-`; an error in this program's words when there are none to be had."""
    if file == "-":
        return sys.stdin.buffer
    path = Path(file)
    if path.is_dir():
        raise BadInput("is a directory, a file is needed", where=file)
    try:
        return path.open("rb")
    except FileNotFoundError as error:
        raise BadInput("there is no such file", where=file) from error
    except (OSError, ValueError) as error:
        raise atomic.explain(error if isinstance(error, OSError) else OSError(str(error)), path) from error


def _say(file: str, report: document_check.DocumentReport) -> None:
    for line, message in report.unreadable:
        click.echo(f"{_place(file, line)}: {message}", err=True)
    for line, finding in report.broken:
        click.echo(f"{_place(file, line)}: {finding}")
    noun = "document" if report.documents == 1 else "documents"
    if report.exit_code == 0:
        click.echo(f"{file}: {report.documents} {noun} valid against {report.schema}")
    else:
        broken, unreadable = report.broken_documents, len(report.unreadable)
        told = f"{broken} of {report.documents} {noun} broken, {unreadable} unreadable"
        click.echo(f"{file}: {told} ({report.schema})", err=True)


def _place(file: str, line: int) -> str:
    return f"{file}:{line}" if line else file
