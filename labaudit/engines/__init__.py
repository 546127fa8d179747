"""Sandboxes for trials: docker, bubblewrap and process behind one protocol, with one self-check list for all.

Start reading at `protocol.py`; `select.py` picks an engine and says why.
"""
