"""What is done in the background, in rounds: no task waits for it."""
