"""Where calls come in: each ingress makes a `Line` of a caller and hands it to a PoP."""
