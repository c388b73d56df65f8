"""Run commands and Python code as processes, and read numbers from them."""
