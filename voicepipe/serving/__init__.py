"""What every command that serves needs: the event loop, its signals, a port, TLS for the network."""
