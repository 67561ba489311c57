"""A verified bundle in the forms that other places read."""
