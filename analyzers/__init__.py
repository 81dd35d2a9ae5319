"""Named byte streams in, one diagnosis out. Pure: the same input gives the same output."""
