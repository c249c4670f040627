"""Where models' files are on this machine, and how they are fetched."""
