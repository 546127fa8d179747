"""A schedule to executed trials with their evidence on disk.

One trial is a row of named stages (`trial`): open the sandbox, run the harness, harvest what it left, measure, seal.
Attempts are staged beside the run and appear in it by one rename, so a kill at any moment leaves whole trials and
recorded lost attempts, nothing in between.
"""
