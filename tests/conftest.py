"""What holds for every test."""

import signal

# A shell starts its background jobs with interrupts ignored, and children would inherit that; the programs that tests
# interrupt must meet what they meet in front of a person.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
