"""The egress self-test: canaries of our own, probes from inside a sandbox, and a verdict from what both sides saw.

`canary` and `probe` are single files of the standard library, because they also run in containers; `verdict` is pure.
"""
