"""Pure building blocks: canonical JSON, digests, trees, the hashchain, ids, time, redaction.

Nothing here touches a file of a run, a network or an engine; everything takes values and returns values.
"""
