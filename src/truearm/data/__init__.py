"""Data that already exist: open a table, choose its columns, and return the readings of each arm."""
