"""Encoders: networks that read tokens, and where their weights come from."""
