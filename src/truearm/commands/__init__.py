"""Run commands and Python code as processes, and read numbers off them."""
