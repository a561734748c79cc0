"""What all resources share: how an operation is declared, and what is derived from the declaration."""
