"""The talking side: an agent's pipes to a client with sessions, and nothing an agent does can stop it.

    link          a way to an agent: a child process here, a sandbox in a trial
    capture       stderr drained without end, kept as head and tail
    outbox        our lines, written by a thread of their own so that a deaf agent blocks nobody
    connection    requests and their answers, in order, raw lines kept first
    permissions   what an agent may do: asked, decided, answered once
    turn          one prompt's state: text, tool calls, how it ended
    session       ACPSession
    client        ACPClient
    text_agent    agents that only print text
    detect        which of the two an agent is
"""
