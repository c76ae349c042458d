"""Quality of predictions, and how sure a number is."""
