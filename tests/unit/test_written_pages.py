"""Pages of the documentation that are written from the code say what the code says now."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from labaudit.cli import labaudit
from scripts import cli_manual, overview_pages

TOP = Path(__file__).resolve().parents[2]


def test_the_cli_manual_is_current() -> None:
    written = cli_manual.PAGE.read_text(encoding="utf-8")
    assert written == cli_manual.render(labaudit), "run `make docs` and commit docs/cli.md"


def test_the_benchmark_overview_is_current() -> None:
    written = overview_pages.BENCHMARKS.read_text(encoding="utf-8")
    assert written == overview_pages.render_benchmarks(), "run `make docs` and commit docs/benchmarks.md"


def test_the_index_of_decisions_is_current() -> None:
    written = overview_pages.DECISIONS.read_text(encoding="utf-8")
    assert written == overview_pages.render_decisions(), "run `make docs` and commit docs/adr/index.md"


def test_no_two_decisions_have_one_number() -> None:
    numbers = [page.name[:4] for page in sorted((TOP / "docs" / "adr").glob("[0-9]*.md"))]
    assert len(numbers) == len(set(numbers)), numbers


def test_a_page_without_a_heading_is_listed_by_its_file_name(tmp_path: Path) -> None:
    (tmp_path / "0007-quiet.md").write_text("no heading\n")
    (tmp_path / "0008-loud.md").write_text("# 0008: Said aloud\n")
    page = overview_pages.render_decisions(tmp_path)
    assert "| [0007](0007-quiet.md) | quiet |" in page
    assert "| [0008](0008-loud.md) | Said aloud |" in page


def commands() -> list[tuple[str, str, click.Command]]:
    """Every command that can be called: its name, its help, itself."""
    found: list[tuple[str, str, click.Command]] = []

    def visit(command: click.Command, name: str) -> None:
        context = click.Context(command, info_name=name)
        found.append((name, command.get_help(context), command))
        if isinstance(command, click.Group):
            for child_name in command.list_commands(context):
                child = command.get_command(context, child_name)
                assert child is not None, f"{name} lists {child_name} but does not have it"
                visit(child, f"{name} {child_name}")

    visit(labaudit, "labaudit")
    return found


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, text, _ in commands()])
def test_the_help_of_every_command_has_an_example(name: str, text: str) -> None:
    assert "labaudit" in text.partition("xample")[2], f"{name} --help shows no example"


def test_a_hidden_command_has_no_section_in_the_manual() -> None:
    group = click.Group("g", commands={"seen": click.Command("seen"), "secret": click.Command("secret", hidden=True)})
    page = cli_manual.render(group)
    assert "## labaudit seen" in page
    assert "secret" not in page.partition("## labaudit seen")[2]
