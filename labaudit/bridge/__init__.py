"""Conversations with agents as recorded, sealed sessions: from the command line, or as a chat.

    recording       a session's folder while it grows, and its seal
    agent_log       an agent's own log as part of its record
    watching        what happens in an ACP session to events of the record
    talks           `labaudit acp probe` and `labaudit acp run`
    agents          AgentManager: which agents there are, and how a chat's partner is opened
    partner         a chat's live agent, over ACP or in text mode
    conversations   which chat goes on with which session, kept over restarts
    turn_view       a running turn to messages, edits and buttons
    room, chat      one chat with its agent; all chats, who may talk, and the commands
    telegram        the Telegram side, and `telegram_run`, which starts it
"""
