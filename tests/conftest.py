"""What holds for every test."""

import os
import signal

# No test is answered from what another one, or the person at this machine, ran before.
os.environ["INDUCTOSCOPE_CACHE"] = "off"

# A shell starts its background jobs with interrupts ignored, and children would inherit that; the programs that tests
# interrupt must meet what they meet in front of a person.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
