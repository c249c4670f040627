"""What of a call's words may be kept."""
