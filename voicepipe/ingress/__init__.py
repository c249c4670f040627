"""The ways in which calls come in: each makes a `Line` for the caller and hands it to a PoP."""
