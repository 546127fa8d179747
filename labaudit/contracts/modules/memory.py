"""Example module `memory`: a conversation to entries that can be looked up again.

    input    {"conversation": [{"role", "text"}...]}
    output   {"entries": [{"key", "role", "text"}...], "stored": how many}
    config   memory_capacity: the newest lines that are kept (default 100)
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from ..scenarios.module import FunctionEvaluator, FunctionRunner, Module, Score

VERSION = "1.0.0"


def store(task: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """The newest lines, each under a key made of its text, so that the same line has the same key everywhere."""
    given = task["input"]
    lines = given.get("conversation") if isinstance(given, Mapping) else None
    if not isinstance(lines, list):
        raise TypeError("memory needs an object with a conversation as input")
    capacity = int(config.get("memory_capacity", 100))
    kept = lines[-capacity:] if capacity > 0 else []
    entries = [_entry(line) for line in kept]
    return {"entries": entries, "stored": len(entries), "offered": len(lines)}


def _entry(line: object) -> dict[str, str]:
    if not isinstance(line, Mapping) or not isinstance(line.get("text"), str):
        raise TypeError("a line of a conversation has a role and a text")
    key = hashlib.sha256(line["text"].encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return {"key": key, "role": str(line.get("role", "")), "text": line["text"]}


def judge(run: Mapping[str, Any], task: Mapping[str, Any]) -> Sequence[Score]:
    """Retention: the part of the offered lines that can be looked up again."""
    scores = [Score("latency", run["metrics"]["latency"], "global")]
    output = run.get("output")
    if isinstance(output, Mapping) and output.get("offered"):
        share = output["stored"] / output["offered"]
        explanation = f"{output['stored']} of {output['offered']} lines kept"
        scores.append(Score("retention", share, "final", explanation))
    return scores


MODULE = Module(
    "memory",
    VERSION,
    FunctionRunner("memory", VERSION, store),
    FunctionEvaluator("memory", ["retention", "latency"], judge),
)
