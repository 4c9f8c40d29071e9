"""Experiments: cells of data set × method × settings × seed, run once and kept."""
