"""A training run, stage by stage, from data to model."""
