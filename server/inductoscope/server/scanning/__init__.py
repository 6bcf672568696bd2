"""Reading Python without running it: what `targets` builds on."""
