"""What the formats share: sources, records, fields, rows and strict JSON."""
