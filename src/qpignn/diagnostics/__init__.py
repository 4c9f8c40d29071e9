"""Whether intervals can be trusted, and where not."""
