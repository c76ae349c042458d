"""Every method as data: recipes, their settings, and which of them go together."""
