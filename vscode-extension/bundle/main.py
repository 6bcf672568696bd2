"""Starts Inductoscope from this folder, whose own packages come before those of the interpreter's environment."""

from inductoscope.server.cli import main

raise SystemExit(main())
