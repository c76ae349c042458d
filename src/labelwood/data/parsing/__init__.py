"""Tools that the formats share: sources, records, fields, rows and strict JSON."""
