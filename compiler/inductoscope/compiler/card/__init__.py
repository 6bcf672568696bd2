"""A card: its figures, and what torch decides by timing on it; read, recorded, and replayed in a simulation."""
