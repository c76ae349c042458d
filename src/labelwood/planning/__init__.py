"""Plans of what a training will take, before it runs."""
