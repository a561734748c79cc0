"""What a request passes before it is answered: limits, authentication, roles, and the removal of secrets."""
