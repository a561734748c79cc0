"""State changes of tasks, runs, schedules and holds, each made in one transaction with all of its consequences."""
