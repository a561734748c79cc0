"""The policy: the rules in force, what they say of a task, and approvals."""
