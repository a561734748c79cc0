"""The things that the API is about, a package for each: its shapes and operations, its service, commands and pages."""
