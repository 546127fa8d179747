"""Values to what a reader sees: addresses, positions, numbers as text, hostile text made visible, templates."""
