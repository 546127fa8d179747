"""Behaviours of agents that end badly, or not at all."""

import os
import time

from peer import out, raw, say


def never(session_id, text, state):
    time.sleep(3600)


def ignore_cancel(session_id, text, state):
    say(session_id, "working")
    time.sleep(3600)


def exits(session_id, text, state):
    say(session_id, "half an ans")
    out.flush()
    os._exit(3)


def exits_unended(session_id, text, state):
    raw(b'{"jsonrpc":"2.0","method":"session/upd')
    os._exit(0)


def odd_stop(session_id, text, state):
    return "because"


def no_stop(session_id, text, state):
    return None


def orphan(session_id, text, state):
    """The agent dies, a child of its keeps the pipes."""
    if os.fork() == 0:
        time.sleep(30)
        os._exit(0)
    os._exit(7)
