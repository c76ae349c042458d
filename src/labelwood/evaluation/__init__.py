"""Looking into models: what a network does inside."""
