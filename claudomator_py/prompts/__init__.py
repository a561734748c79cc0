"""What an agent is told: its prompt, what another agent left behind, and the conversation that it continues."""
