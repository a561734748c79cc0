"""Pure decisions: where a task runs."""
