"""Level cli_basic: trial_input.json in, trial_output.json out, and nothing else is known about what happened."""

from __future__ import annotations

import json
import os

from arithmetic import calculate, choose, operation, parse, reduced


def solve(expression, precedence):
    """The answer as text."""
    terms = parse(expression)
    while True:
        reply = choose({"terms": terms, "precedence": precedence})
        if "answer" in reply:
            return reply["answer"]
        terms = reduced(terms, reply["apply"], calculate(operation(terms, reply["apply"]))["value"])


def main():
    with open(os.environ["LABAUDIT_TRIAL_INPUT"], encoding="utf-8") as stream:
        trial = json.load(stream)
    answer = solve(trial["task"]["expression"], trial["bindings"].get("precedence", True))
    output = {"schema_version": "trial_output_v1", "ids": trial["ids"], "outcome": "success", "answer": answer}
    path = os.path.join(trial["runtime"]["paths"]["out"], "trial_output.json")
    with open(path, "w", encoding="utf-8") as stream:
        json.dump(output, stream)


if __name__ == "__main__":
    main()
