"""Studies over HTTP: many people and machines, one log, nothing lost. A thin skin over the log and its replay."""
