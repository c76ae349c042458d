"""The shapes that data take: sparse and dense matrices, texts, names, taxonomies."""
