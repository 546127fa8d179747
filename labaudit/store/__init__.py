"""The run folder on disk: the only package that knows path names.

Files appear by temporary file, fsync and rename, so a reader never sees half; artifacts are named by their hash; event
logs only grow.
"""
