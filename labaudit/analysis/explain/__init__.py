"""Effects and evidence to what might explain them: exemplary tasks, suspects, aligned differences of trials."""
