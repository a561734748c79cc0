"""Claudomator: an unattended dispatcher for coding agents."""

__version__ = "0.1.0"
