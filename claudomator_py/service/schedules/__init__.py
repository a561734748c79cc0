"""Tasks that come back: their times, the clock that rings at them, and what operators do to them."""
