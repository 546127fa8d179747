"""Import-linter contract types that the project needs beside the built-in ones.

`standard_library_only` turns a package name into a check that nothing in it imports a foreign library or another part
of the project. `one_door` turns a library's name into a check that only the named modules import it directly.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from fnmatch import fnmatchcase

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


def modules_of(graph: ImportGraph, package: str) -> set[str]:
    """The package itself and everything below it; empty when it does not exist."""
    return {module for module in graph.modules if module == package or module.startswith(f"{package}.")}


def render_links(links: Iterable[tuple[str, str]], graph_lines: dict[tuple[str, str], list[int]]) -> None:
    for importer, imported in sorted(links):
        lines = ", ".join(f"l.{number}" for number in graph_lines[importer, imported])
        output.print_error(f"{importer} -> {imported} ({lines})")


def line_numbers(graph: ImportGraph, importer: str, imported: str) -> list[int]:
    details = graph.get_import_details(importer=importer, imported=imported)
    return sorted(detail["line_number"] for detail in details)


class StandardLibraryOnly(Contract):
    """Nothing in `packages` imports anything but the standard library and its own package.

    `also_allowed` names project modules that may be imported as well (none by default).
    """

    type_name = "standard_library_only"

    packages = fields.SetField(subfield=fields.StringField())
    also_allowed = fields.SetField(subfield=fields.StringField(), required=False)

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        allowed: set[str] = self.also_allowed or set()  # type: ignore[assignment]
        found: dict[tuple[str, str], list[int]] = {}
        absent = []
        for package in self.packages:  # type: ignore[attr-defined]
            own = modules_of(graph, package)
            if not own:
                absent.append(package)  # a renamed package must not pass because nobody looks at it any more
            for importer in own:
                for imported in graph.find_modules_directly_imported_by(importer):
                    if imported in own or imported in allowed:
                        continue
                    if imported.split(".")[0] in sys.stdlib_module_names:
                        continue
                    found[importer, imported] = line_numbers(graph, importer, imported)
        return ContractCheck(kept=not found and not absent, metadata={"found": found, "absent": absent})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for package in check.metadata["absent"]:
            output.print_error(f"{package} does not exist; correct its name in .importlinter")
        if check.metadata["found"]:
            output.print_error("These imports leave the standard library:")
            output.new_line()
        render_links(check.metadata["found"], check.metadata["found"])


class OneDoor(Contract):
    """Only modules whose name matches `doors` (shell patterns) import the foreign `libraries` directly."""

    type_name = "one_door"

    libraries = fields.SetField(subfield=fields.StringField())
    doors = fields.SetField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        found: dict[tuple[str, str], list[int]] = {}
        for library in self.libraries:  # type: ignore[attr-defined]
            if library not in graph.modules:
                continue
            for importer in graph.find_modules_that_directly_import(library):
                if not any(fnmatchcase(importer, door) for door in self.doors):  # type: ignore[attr-defined]
                    found[importer, library] = line_numbers(graph, importer, library)
        return ContractCheck(kept=not found, metadata={"found": found})

    def render_broken_contract(self, check: ContractCheck) -> None:
        doors = ", ".join(sorted(str(door) for door in self.doors))  # type: ignore[attr-defined]
        output.print_error(f"These imports go around the one door ({doors}):")
        output.new_line()
        render_links(check.metadata["found"], check.metadata["found"])
