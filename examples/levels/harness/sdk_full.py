"""Level sdk_full: every call that leaves the agent goes through the SDK, which records what was asked and answered.

With this record the trial can be replayed without the model: the answers come from it, and a call that it does not
hold ends the replay. `labaudit_sdk` beside this file is a copy of labaudit.sdk (`python3 -m labaudit.sdk harness/`).
"""

from __future__ import annotations

import time

from arithmetic import calculate, choose, operation, parse, reduced
from labaudit_sdk import Session


def main():
    with Session.open(
        "arithmetic", "1", level="sdk_full", step_semantics="one choice and the operation that it chose"
    ) as lab:
        terms = parse(lab.trial.task["expression"])
        # The time comes from outside the agent too, so it is recorded like a call.
        started = lab.value("clock", time.time)
        answer = None
        while lab.running and answer is None:
            with lab.step():
                # Asked anew in each step: in a forked trial the bindings change on the way.
                precedence = lab.bindings.get("precedence", True)
                reply = lab.model("arithmetic", {"terms": terms, "precedence": precedence}, choose)
                answer = reply.get("answer")
                if answer is None:
                    done = lab.tool("calculate", operation(terms, reply["apply"]), calculate)
                    terms = reduced(terms, reply["apply"], done["value"])
        lab.finish("missing" if answer is None else "success", answer=answer, metrics={"started_at": started})


if __name__ == "__main__":
    main()
