"""Who does a task: pure, from its text and the cards of specialists to a decision."""
