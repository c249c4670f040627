"""What every room stands on: tasks, threads, limits, errors, the environment, names of calls and callers."""
