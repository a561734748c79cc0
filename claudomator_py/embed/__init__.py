"""Encoders: from a text to a vector, by which texts are compared."""
