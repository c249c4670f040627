"""Speech synthesis."""
