"""How long tests wait for what comes."""

PATIENCE_S = 120.0
"""Only a hang may meet it: what takes a second on a calm machine takes a minute on one where others work."""
