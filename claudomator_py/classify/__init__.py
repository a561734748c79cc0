"""Asking a cheap model for a tier: one file per way to reach one."""
