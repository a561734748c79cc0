"""Schedules: what is made again and again, and when."""
