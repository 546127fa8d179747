"""Example module `intent`: a sentence to the intent it shows, by keywords alone, in Chinese and English.

    input    text
    output   {"intent": name, "confidence": 0..1}
    config   intent_min_confidence: below it the intent is "unknown" (default 0.5)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..scenarios.module import FunctionEvaluator, FunctionRunner, Module, Score

VERSION = "1.0.0"
UNKNOWN = "unknown"
# An intent shows in an action and the thing acted on; each list has one word or more of both.
_INTENTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "book_flight": (("订", "预订", "book", "reserve"), ("机票", "航班", "flight", "plane ticket")),
    "cancel_flight": (("取消", "退", "cancel", "refund"), ("机票", "航班", "flight", "plane ticket")),
    "ask_weather": (("怎么样", "如何", "what", "how"), ("天气", "weather")),
}
# A wish makes the action a request: "I want to", as against "I booked".
_WISHES = ("想", "要", "请", "want", "please", "would like", "need")


def recognise(task: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """The best intent of the task's input; 0.6 for action and thing together, the rest for how clear the wish is."""
    text = task["input"]
    if not isinstance(text, str):
        raise TypeError(f"intent needs a sentence as input, got {type(text).__name__}")
    lowered = text.lower()
    wish = any(word in lowered for word in _WISHES)
    best, confidence = UNKNOWN, 0.0
    for name, (actions, things) in _INTENTS.items():
        action, thing = (any(word in lowered for word in words) for words in (actions, things))
        found = (0.6 if action and thing else 0.3 if thing else 0.0) + (0.35 if action and thing and wish else 0.0)
        if found > confidence:
            best, confidence = name, found
    if confidence < float(config.get("intent_min_confidence", 0.5)):
        best = UNKNOWN
    return {"intent": best, "confidence": round(confidence, 2)}


def judge(run: Mapping[str, Any], task: Mapping[str, Any]) -> Sequence[Score]:
    """Accuracy where the task says what was expected; latency always."""
    scores = [Score("latency", run["metrics"]["latency"], "global")]
    expected, output = task.get("expected"), run.get("output")
    if isinstance(expected, Mapping) and "intent" in expected and isinstance(output, Mapping):
        wanted, given = str(expected["intent"]), str(output.get("intent"))
        least = expected.get("confidence", 0)
        sure = isinstance(least, int | float) and float(output.get("confidence", 0)) >= least
        explanation = f"expected {wanted} with confidence {least} or more"
        snippets = (f"expected: {wanted}", f"actual: {given}")
        scores.append(Score("accuracy", float(wanted == given and sure), "final", explanation, snippets))
    return scores


MODULE = Module(
    "intent",
    VERSION,
    FunctionRunner("intent", VERSION, recognise),
    FunctionEvaluator("intent", ["accuracy", "latency"], judge),
)
