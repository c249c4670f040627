"""ONE call: what the caller says, whose turn it is, and what is said to them."""
