"""What anyone can ask for, and the answers."""
