"""The engine that drives Docker, or anything that speaks Docker's API on a local socket."""
