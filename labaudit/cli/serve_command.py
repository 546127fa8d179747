"""`labaudit serve`: a loopback server to look at a site."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("directory", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0 takes any free one.")
@click.option("--verbose", is_flag=True, help="Say each request on stderr.")
def serve(directory: Path, port: int, verbose: bool) -> None:
    """Show the site in DIR on 127.0.0.1, read-only, until Ctrl-C.

    A site needs no server: it opens by double-click. This one sends the headers that a published site should have.

    Example: labaudit serve site --port 8000
    """
    from labaudit.site.server import SiteServer

    with SiteServer(directory, port=port, quiet=not verbose) as server:
        click.echo(server.address)
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            click.echo("stopped", err=True)
