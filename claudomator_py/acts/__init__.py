"""What command lines do beyond the working directory, pure and of the standard library alone: hooks run it as well."""
