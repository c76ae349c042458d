"""Ways to fine-tune an encoder on a label tree: level by level, all levels at once, label attention."""
