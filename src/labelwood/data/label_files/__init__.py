"""Side files about labels: their texts, and taxonomies over them."""
