"""What all rooms use: tasks, threads, limits, errors, the environment, ids of calls, callers' numbers."""
