"""Notifications: who was told about what."""
