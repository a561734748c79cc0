"""Channels: where people and specialists write to each other."""
