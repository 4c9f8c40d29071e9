"""Diagnosis of prediction intervals: coverage, groups, widths and distribution shift."""
