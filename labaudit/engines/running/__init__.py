"""The life of a sandbox that all engines share: what it is given, its streams, its end, its outputs."""
