"""Trained models: prediction, ensembles, and their folders."""
