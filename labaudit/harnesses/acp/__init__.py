"""Any agent that speaks the Agent Client Protocol as a harness, and as a partner in a recorded conversation.

    wire       the protocol without input or output
    client     the talking side: ACPClient, ACPSession, and what an agent may do
    trial      a conversation inside a sandbox to the files of a trial
    harness    AcpHarness, which the runner drives
"""
