"""Is there voice, and is the turn complete? By the sound alone."""
