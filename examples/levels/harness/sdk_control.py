"""Level sdk_control: the same agent with the SDK, which writes the evidence and obeys stop and checkpoint.

`labaudit_sdk` beside this file is a copy of labaudit.sdk, made by `python3 -m labaudit.sdk harness/`.
"""

from __future__ import annotations

import json
import os

from arithmetic import calculate, choose, operation, parse, reduced
from labaudit_sdk import Session


def main():
    with Session.open(
        "arithmetic", "1", level="sdk_control", step_semantics="one choice and the operation that it chose"
    ) as lab:
        terms = parse(lab.trial.task["expression"])
        precedence = lab.trial.bindings.get("precedence", True)
        memory = os.path.join(lab.trial.paths["state"], "memory.json")

        def remember(label):
            """What a fork needs to go on from here."""
            with open(memory, "w") as stream:
                json.dump({"label": label, "terms": terms}, stream)

        lab.on_checkpoint = remember
        answer = None
        while lab.running and answer is None:
            with lab.step():
                reply = lab.model("arithmetic", {"terms": terms, "precedence": precedence}, choose)
                answer = reply.get("answer")
                if answer is None:
                    done = lab.tool("calculate", operation(terms, reply["apply"]), calculate)
                    terms = reduced(terms, reply["apply"], done["value"])
        lab.finish("missing" if answer is None else "success", answer=answer)


if __name__ == "__main__":
    main()
