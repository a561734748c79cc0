"""What tasks changed and their branches: shown, taken over, or left."""
