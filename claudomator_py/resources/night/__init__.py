"""The night as a picture: what ran where and when, and what stood in the way."""
