"""Encoders: from texts to vectors, by which routing compares them."""
