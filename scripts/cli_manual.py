"""Turns the command tree into docs/cli.md: the help of every command, as `--help` prints it. Run by `make docs`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

TOP = Path(__file__).resolve().parent.parent
PAGE = TOP / "docs" / "cli.md"
WIDTH = 100

INTRODUCTION = """\
# Command line

This page is written from the commands themselves by `make docs`; `labaudit COMMAND --help` prints the same text.

A run is named by its id, a unique prefix of it, `latest`, or a path; a trial is named `RUN/TRIAL`, or by its bare id
while that is unique. The lab folder is `.lab/`, or what `--lab-dir` or `LABAUDIT_DIR` says. Data goes to stdout and
talk to stderr; commands that read have `--json`. `NO_COLOR` is honoured.

| exit code | meaning |
|--:|---|
| 0 | done, or verified |
| 1 | the evidence contradicts a claim, or the run is invalid by its own rules |
| 2 | wrong usage, or malformed input |
| 3 | a policy is not met; no trust anchor was given |
| 4 | the environment lacks something: an engine, a permission |
| 130 | interrupted; `labaudit resume` goes on |
"""


def walk(command: click.Command, name: str, parent: click.Context | None) -> Iterator[tuple[str, str]]:
    """(full name, help text) of a command and of everything below it, in the order that the group lists."""
    context = click.Context(command, info_name=name, parent=parent, terminal_width=WIDTH, max_content_width=WIDTH)
    yield context.command_path, command.get_help(context)
    if isinstance(command, click.Group):
        for child_name in command.list_commands(context):
            child = command.get_command(context, child_name)
            if child is not None and not child.hidden:
                yield from walk(child, child_name, context)


def render(root: click.Command) -> str:
    sections = [INTRODUCTION]
    for path, text in walk(root, "labaudit", None):
        body = "\n".join(line.rstrip() for line in text.strip().splitlines())
        sections.append(f"## {path}\n\n```text\n{body}\n```\n")
    return "\n".join(sections)


def main() -> None:
    from labaudit.cli import labaudit

    PAGE.write_text(render(labaudit), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(TOP)}")


if __name__ == "__main__":
    sys.path.insert(0, str(TOP))
    main()
