"""The composition root: the only place that knows the concrete classes and puts them together into a daemon."""
