"""The daemon itself: its health, its switches, its copies."""
