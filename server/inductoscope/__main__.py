"""`python -m inductoscope`."""

import sys

from inductoscope.server.cli import main

sys.exit(main())
