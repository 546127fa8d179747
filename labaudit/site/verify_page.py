"""`verify.html` and its scripts: the same bytes in every site of one labaudit version.

A publisher's page could lie about its own check. So the page depends on nothing of the site it stands in, and anyone
compares its digests with those that `labaudit verify --page-digest` prints.
"""

from __future__ import annotations

from labaudit.core.digest import sha256_hex
from labaudit.site.drawing.templates import asset, render
from labaudit.site.output import SiteWriter
from labaudit.site.pages.frame import site_frame

SCRIPTS = ("verify_hash.js", "verify_core.js", "verify_zip.js", "verify_page.js")


def page_files() -> dict[str, bytes]:
    """The page and everything it loads, by path in the site."""
    files = {"verify.html": render("verify.html", **site_frame(current="verify.html"), scripts=SCRIPTS)}
    files |= {f"assets/{name}": asset(name) for name in (*SCRIPTS, "site.css", "site.js", "icon.svg")}
    return files


def page_digest() -> str:
    """One line per file as `sha256sum` prints it, the page first; `sha256sum -c` takes them in a site's folder."""
    return "\n".join(f"{sha256_hex(data)}  {path}" for path, data in page_files().items())


def write_verify_page(writer: SiteWriter) -> None:
    """The page and its scripts; what other pages share with it is written here once."""
    for path, data in page_files().items():
        writer.write(path, data)
