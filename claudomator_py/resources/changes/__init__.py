"""Changes: what each run of a task made of the place where it worked."""
