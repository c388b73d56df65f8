"""Everything that touches clock, disk, process or network."""
