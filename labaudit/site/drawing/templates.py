"""The page templates: jinja2 with autoescape, strict about names, and every printed text made visible."""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from labaudit.resources import template_dir
from labaudit.site.drawing import figures
from labaudit.site.drawing.plain_text import between_quotes, between_tags, shorten, shown


@cache
def environment() -> Environment:
    """One environment for all pages of a process."""
    made = Environment(
        loader=FileSystemLoader(template_dir(), encoding="utf-8"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=shown,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        keep_trailing_newline=False,
    )
    made.filters.update(
        number=figures.number,
        decimal=figures.decimal,
        signed=figures.signed,
        pvalue=figures.p_value,
        size=figures.size,
        seconds=figures.seconds,
        clock=figures.clock,
        words=figures.words,
        shorten=shorten,
        between_tags=between_tags,
        between_quotes=between_quotes,
    )
    made.globals.update(of=figures.percent, between=figures.interval)
    return made


def render(template: str, **values: Any) -> bytes:
    """One page's bytes, ended by one newline."""
    return environment().get_template(template).render(**values).encode("utf-8", "backslashreplace") + b"\n"


def asset(name: str) -> bytes:
    """The bytes of a file in site_templates/assets."""
    return (template_dir() / "assets" / name).read_bytes()
