"""What every room stands on: tasks, threads, limits, errors, the environment. Knows no call."""
