"""Every table and figure of the paper: one file each, with a ``SPEC``."""
