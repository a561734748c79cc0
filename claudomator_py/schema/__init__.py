"""Reading what people write: task files and configuration, from text to values, or problems with place and remedy."""
