"""`voicepipe bench directory`: how soon a directory answers, what calls by it take longer, how well it chooses."""
