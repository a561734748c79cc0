"""Specialists: the roles that tasks are given to, for whom each exists, and finding one."""
