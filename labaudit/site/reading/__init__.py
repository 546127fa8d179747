"""A run folder to values: each file hashed against its record as it is read."""
