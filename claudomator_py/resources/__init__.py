"""What can be asked for, a package for each thing: its shapes and operations, what they do, how they look."""
