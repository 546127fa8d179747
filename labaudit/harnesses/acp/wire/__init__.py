"""The protocol without any input or output: bytes to lines, lines to messages, messages to values, and back.

    framing       chunks of a stream to bounded lines
    jsonrpc       a line to a request, notification, response or a named defect; values to lines
    dialect       what we send: official v1, or the forms of the `kiro` dialect
    updates       what a session says, read from either dialect
    extensions    Kiro's `_kiro.dev/*` notifications
    transcript    both directions, kept as they were before anything is read from them
    text          agent text made fit for records
"""
