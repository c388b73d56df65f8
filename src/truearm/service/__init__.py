"""Studies over HTTP: many people and machines, one log, nothing lost."""
