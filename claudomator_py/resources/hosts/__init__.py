"""Hosts: where runs take place, and how these places are."""
