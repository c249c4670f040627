"""What is kept of calls: records on disk, and webhooks about them."""
