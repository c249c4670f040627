"""What is kept of calls."""
