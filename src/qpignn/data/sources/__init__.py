"""Where the known data sets come from: one file per origin."""
