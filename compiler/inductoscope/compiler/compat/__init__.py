"""The one place for private parts of torch: one module per area, each access with its reason and checked versions."""
