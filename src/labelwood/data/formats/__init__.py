"""One file for each format that can be read."""
