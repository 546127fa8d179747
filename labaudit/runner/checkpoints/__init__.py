"""The writable folders of a running trial to artifacts, and back into a fresh sandbox.

    tree        a folder to a list of entries with digests, every file read
    archive     chosen entries to a tar whose bytes depend on nothing but them, and safely out of such a tar
    checkpoint  `CheckpointManager`: saves and restores checkpoints of a run
"""
