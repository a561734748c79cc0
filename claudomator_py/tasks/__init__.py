"""What can happen to a task, a run, a schedule or a hold: each inside one transaction, with all that follows."""
