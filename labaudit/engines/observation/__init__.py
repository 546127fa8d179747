"""From what was read in and around a sandbox to facts, invariants and state_inventory.json."""
