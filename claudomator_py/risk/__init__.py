"""What a text would have done, read from words that are data."""
