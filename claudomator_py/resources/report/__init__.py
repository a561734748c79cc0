"""The report: what a night brought, what it cost, and what is left."""
