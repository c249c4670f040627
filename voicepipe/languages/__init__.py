"""What is known of each language: its words, how they are said, and whose turn they make it."""
