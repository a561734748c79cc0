"""Events: what happened, and what happens."""
