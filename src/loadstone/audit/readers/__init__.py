"""Read the sections of a collected document into facts."""
