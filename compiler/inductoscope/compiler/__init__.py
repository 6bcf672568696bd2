"""The worker: what runs in the user's interpreter, with nothing but torch beside it."""
