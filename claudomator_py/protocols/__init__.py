"""How other programs ask for work and do it: A2A, and the hub."""
