"""How soon a directory answers, what calls by it take longer, and how well it chooses."""
