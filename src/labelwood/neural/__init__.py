"""The neural rooms: tokens, encoder, heads, trainer. The only place that imports torch, and only when it is used."""
