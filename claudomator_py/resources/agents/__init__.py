"""Agents: who can be given runs, and what holds them."""
