"""Access: tokens, and the browsers that are logged in."""
