"""The agents: for each kind, how to start it and how to read what it wrote."""
