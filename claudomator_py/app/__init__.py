"""The composition root: the only package that knows the concrete classes and assembles a daemon from them."""
