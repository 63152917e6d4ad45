"""A worker with activities that go wrong, for the tests."""

import os
import sys
import time

from worker import NonRetryable, RetryAfter, main


def once_more(row):
    """Fails its first attempt."""
    if row.attempt == 1:
        raise RetryAfter(0.1, "not yet")
    return f"attempt {row.attempt} after {row.last_failure['type']}: {row.last_failure['message']}"


def hopeless(row):
    """Fails for good."""
    raise NonRetryable(f"no good: {row.input.decode()}")


def endless(row):
    """Runs until its time is over, and a little on."""
    row.stopped.wait()
    time.sleep(0.1)
    return "too late"


def held(row):
    """Says that it runs. With HANG it never ends."""
    sys.stdout.write(f"begun {row.ordinal}\n")  # at once: print would let others between
    sys.stdout.flush()
    while os.environ.get("HANG"):
        time.sleep(60)
    return row.input.upper()


main({"once-more": once_more, "hopeless": hopeless, "endless": endless, "held": held})
