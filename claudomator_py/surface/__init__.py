"""What every resource has in common: how an operation is declared, and what follows from the declaration."""
