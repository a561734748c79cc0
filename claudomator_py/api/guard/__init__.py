"""What a request passes before it is answered: the connection, who asks, what they may, and what they may not see."""
