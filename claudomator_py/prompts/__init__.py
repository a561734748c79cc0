"""What an agent is told: its prompt, what another agent left, and the conversation it continues in."""
