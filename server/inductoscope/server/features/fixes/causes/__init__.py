"""One module for each cause of a finding: from a `Problem` to what could be written instead."""
