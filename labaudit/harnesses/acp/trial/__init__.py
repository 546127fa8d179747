"""A trial's conversation: what is said to the agent, and what the runner keeps of it out of the agent's reach."""
