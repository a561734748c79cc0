"""Who does a task: pure, from its text and the specialists' cards to a decision."""
