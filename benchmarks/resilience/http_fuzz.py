"""Hostile calls to the HTTP API, made by schemathesis. `python -m benchmarks.resilience.http_fuzz`.

The server has a collection of every kind with very few reports. Calls are generated from the served
OpenAPI description, half of them valid and half invalid; some connections send no HTTP at all. Exit
status 1 for an answer of 500 or more, a traceback, an answer that is not as described, or if the
server's memory grows by more than `--grows` MB after the first tenth of the calls.
"""

import argparse
import sys
import time

from tests.fuzz.http import fuzz


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--grows", type=float, default=64.0)
    arguments = parser.parse_args()
    began = time.monotonic()
    found = fuzz(arguments.calls, number=arguments.seed)
    seconds = time.monotonic() - began
    statuses = ", ".join(f"{status}: {count:,}" for status, count in sorted(found.statuses.items()))
    print(f"{found.calls:,} calls in {seconds:.0f} s; answers by status {statuses}")
    print(f"memory {found.rss_before_mb:.0f} MB, at the end {found.rss_after_mb:.0f} MB")
    for failure, count in found.failures.most_common():
        print(f"{count} x {failure}")
    if found.stderr:
        print(f"the server said:\n{found.stderr[:5000]}")
    grew = found.rss_after_mb - found.rss_before_mb > arguments.grows
    return int(found.wrong or grew)


if __name__ == "__main__":
    sys.exit(main())
