"""Statements about arms, and what a stranger needs to recompute them."""
