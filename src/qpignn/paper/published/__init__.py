"""The ``published`` protocol: what the authors' code did, mistakes included."""
