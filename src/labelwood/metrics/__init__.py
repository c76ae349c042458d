"""How good predictions are, and how sure a number is."""
