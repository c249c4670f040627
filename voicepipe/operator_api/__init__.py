"""What operators ask over HTTP: records, the dashboard, metrics, the built-in pages."""
