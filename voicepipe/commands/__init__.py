"""What one types: `voicepipe COMMAND`."""
