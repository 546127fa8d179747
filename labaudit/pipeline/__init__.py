"""The whole story in order: `run` first, `demo` is the same on a bundled experiment, `regrade` looks back at it."""
