"""What operators see. The call path knows nothing of it."""
