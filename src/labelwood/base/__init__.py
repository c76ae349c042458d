"""Parts that every room uses: configs, progress, threads, memory budgets, digests and canonical JSON."""
