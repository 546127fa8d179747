"""labaudit: benchmark results of AI agents that anyone can check."""

__version__ = "0.1.0"
