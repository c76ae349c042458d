"""The parts that recipes are made of: features, trees, shortlists, classifiers, search, and second rankings."""
