"""What an operator's rules allow a task, before any model sees it: pure, deterministic, in the order of the rules."""
