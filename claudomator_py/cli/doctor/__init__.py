"""The checks of ``doctor``, by subject: each yields findings with remedies."""
