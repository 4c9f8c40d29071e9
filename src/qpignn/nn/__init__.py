"""The net: sparse products, encoders and heads."""
