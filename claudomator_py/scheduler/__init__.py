"""From a snapshot to the actions that follow from it: pure and deterministic."""
