"""Turns folders of pages into their overviews: docs/benchmarks.md and docs/adr/index.md. Run by `make docs`."""

from __future__ import annotations

from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
DOCS = TOP / "docs"
BENCHMARKS = DOCS / "benchmarks.md"
DECISIONS = DOCS / "adr" / "index.md"

ABOUT_BENCHMARKS = """\
# Benchmarks

`make bench` runs every `benchmarks/bench_*.py` and prints its table; each also runs alone. A figure is a ratio to a
floor or to another tool measured in the same run, because seconds from one machine say little about the next one.
The pages below hold the figures of one such run and say how it was made.
"""

ABOUT_DECISIONS = """\
# Decisions

A decision that had alternatives gets one page here: what was decided, what else was looked at, and what follows from
it. Pages are numbered and never deleted; a later page may say that it replaces an earlier one.
"""


def title_of(page: Path) -> str:
    """The page's first heading, or its file name when it has none."""
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            return line[2:].strip()
    return page.stem


def render_benchmarks(folder: Path = DOCS / "benchmarks") -> str:
    rows = [f"- [{title_of(page)}](benchmarks/{page.name})" for page in sorted(folder.glob("*.md"))]
    return ABOUT_BENCHMARKS + "\n" + ("\n".join(rows) or "No topic has been measured yet.") + "\n"


def render_decisions(folder: Path = DOCS / "adr") -> str:
    """One row per `NNNN-name.md`; the number is taken from the file name, the title from its heading."""
    rows = []
    for page in sorted(folder.glob("[0-9][0-9][0-9][0-9]-*.md")):
        number = page.name[:4]
        title = title_of(page).removeprefix("ADR ").removeprefix(number).lstrip(":.- ")
        rows.append(f"| [{number}]({page.name}) | {title} |")
    return "\n".join([ABOUT_DECISIONS, "| # | decision |", "|---|---|", *rows]) + "\n"


def main() -> None:
    for page, text in ((BENCHMARKS, render_benchmarks()), (DECISIONS, render_decisions())):
        page.write_text(text, encoding="utf-8")
        print(f"wrote {page.relative_to(TOP)}")


if __name__ == "__main__":
    main()
