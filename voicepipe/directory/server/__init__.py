"""The directory's HTTP server."""
