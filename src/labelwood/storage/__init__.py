"""Files: written whole or not at all, read checked; model folders and the stages of a run."""
