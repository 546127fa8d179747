"""Compiles a standard library to bytecode that is the same bytes everywhere. Run by the image's own interpreter.

An image's root is read-only, so Python could never cache its bytecode there and would compile at every start.
Marshal version 2 writes no reference flags; with them the bytes depend on what else is in memory.
Usage: bytecode.py TREE LIBRARY, where LIBRARY is relative to TREE.
"""

import _imp
import importlib.util
import marshal
import os
import sys

SKIPPED = {"__pycache__", "test", "idlelib", "lib2to3", "turtledemo", "ensurepip"}


def compile_library(tree: str, library: str) -> None:
    for folder, names, files in os.walk(os.path.join(tree, library)):  # noqa: PTH118, pathlib would triple the start
        names[:] = sorted(name for name in names if name not in SKIPPED)
        for file in sorted(file for file in files if file.endswith(".py")):
            compile_file(tree, folder, file)


def compile_file(tree: str, folder: str, file: str) -> None:
    with open(f"{folder}/{file}", "rb") as stream:  # noqa: PTH123
        source = stream.read()
    name = f"{folder}/{file}".removeprefix(tree)
    try:
        code = compile(source, name, "exec", dont_inherit=True, optimize=0)
    except (SyntaxError, ValueError):
        return  # a template or a test of the compiler itself: Python will say so if someone imports it
    # flag 1: hash-based, unchecked, so that no date is in the file
    header = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little")
    header += _imp.source_hash(importlib.util._RAW_MAGIC_NUMBER, source)  # type: ignore[attr-defined]
    os.makedirs(f"{folder}/__pycache__", exist_ok=True)  # noqa: PTH103
    with open(f"{folder}/__pycache__/{file[:-3]}.{sys.implementation.cache_tag}.pyc", "wb") as stream:  # noqa: PTH123
        stream.write(header + marshal.dumps(code, 2))


if __name__ == "__main__":
    compile_library(sys.argv[1], sys.argv[2])
