"""Reports as text for people: blocks, sections, and the terminal that they are printed on."""
