"""Example modules: `intent`, `dialogue` and `memory`, one file each, standard library only, no model API."""
