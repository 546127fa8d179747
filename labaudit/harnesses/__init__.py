"""A trial input and an open sandbox to a finished harness run: command line programs, SDK programs, ACP agents.

`protocol` is the seam that the runner drives; `cli_harness` and `acp` implement it; `identity` says what was executed.
"""
