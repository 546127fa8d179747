"""Example module `dialogue`: an intent and the assistant's line to a conversation and what is still to be asked.

    input    {"intent": name, "message": the assistant's line}
    output   {"conversation": [{"role", "text"}...], "open_slots": [name...], "intent": name}
    config   dialogue_greeting: a first line of the assistant (default none)

An intent that the module has no slots for gets a question back instead of the given line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..scenarios.module import FunctionEvaluator, FunctionRunner, Module, Score

VERSION = "1.0.0"
CLARIFY = "对不起，请再说一遍。 Sorry, could you say that again?"
_SLOTS: dict[str, dict[str, tuple[str, ...]]] = {
    "book_flight": {
        "destination": ("去哪", "目的地", "where", "destination"),
        "date": ("什么时候", "哪天", "日期", "when", "date"),
    },
    "cancel_flight": {"booking": ("订单", "编号", "booking", "reference")},
    "ask_weather": {"place": ("哪里", "城市", "where", "city")},
}


def converse(task: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """The conversation so far; a slot that the line asks for is no longer open."""
    given = task["input"]
    if not isinstance(given, Mapping) or not isinstance(given.get("message"), str):
        raise TypeError("dialogue needs an object with a message as input")
    intent = given.get("intent")
    if not isinstance(intent, str):
        raise ValueError("dialogue got no intent: inject it from an earlier step")
    message = given["message"] if intent in _SLOTS else CLARIFY
    lines = [config["dialogue_greeting"]] if config.get("dialogue_greeting") else []
    conversation = [{"role": "assistant", "text": str(line)} for line in (*lines, message)]
    slots = _SLOTS.get(intent, {})
    asked = [name for name, words in slots.items() if any(word in message.lower() for word in words)]
    return {
        "intent": intent,
        "conversation": conversation,
        "asked_slots": asked,
        "open_slots": [name for name in slots if name not in asked],
    }


def judge(run: Mapping[str, Any], task: Mapping[str, Any]) -> Sequence[Score]:
    """Whether the line asks for something that the intent needs; unknown intents need nothing, so no score."""
    scores = [Score("latency", run["metrics"]["latency"], "global")]
    output = run.get("output")
    if isinstance(output, Mapping) and output.get("intent") in _SLOTS:
        asked = output.get("asked_slots", [])
        explanation = "asks for " + ", ".join(asked) if asked else "asks for nothing that the intent needs"
        scores.append(Score("asks_for_slot", bool(asked), "final", explanation))
    return scores


MODULE = Module(
    "dialogue",
    VERSION,
    FunctionRunner("dialogue", VERSION, converse),
    FunctionEvaluator("dialogue", ["asks_for_slot", "latency"], judge),
)
