"""What is kept of calls: records on disk, and who is told of them."""
