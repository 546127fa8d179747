"""`labaudit demo`: the whole way on the bundled experiment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from labaudit.cli.options import json_option, print_json
from labaudit.cli.run_command import execution_options, request_from, show_result


@click.command(epilog="Example: labaudit demo --out demo-site")
@click.option("--out", type=click.Path(path_type=Path), default=Path("demo"), show_default=True, help="A new folder.")
@click.option("--engine", type=click.Choice(["auto", "docker", "bubblewrap", "process"]), help="Over the file's own.")
@execution_options
@json_option
@click.pass_context
def demo(ctx: click.Context, /, out: Path, engine: str | None, as_json: bool, **options: Any) -> None:
    """Run a bundled experiment, analyse, sign and verify it, and build its site.

    The agent in it has no model, so what it shows is how labaudit works, not how good an agent is.
    """
    from labaudit.cli.progress import ConsoleProgress
    from labaudit.pipeline.demo import demonstrate

    done = demonstrate(out, request_from(options, engine), ConsoleProgress(quiet=options["quiet"]))
    if as_json:
        found = {"run_ids": [result.run.run_id for result in done.results], "lab": str(done.lab.path)}
        print_json({**found, "site": str(done.site), "tampered": done.tampered.as_json()})
    else:
        for result in done.results:
            show_result(result, as_json=False, key=options["key"])
            click.echo("")
        finding = done.tampered.findings[0]
        click.echo(f"tampered   one byte changed in a copy: {done.tampered.verdict} ({finding.code} at {finding.path})")
        click.echo(f"look at    {done.site}")
    ctx.exit(1 if any(result.invalid for result in done.results) else 0)
