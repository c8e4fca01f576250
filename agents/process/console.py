"""Set up a worker's log on the console: one line for each event, without repetition."""

import logging
import sys
from typing import Final

# A Faust service logs under the module of its class: ours are in faust_parts.
_NOISY: Final = ("aiokafka", "faust", "mode", "asyncio", "aiohttp", "ldpstream.agents.faust_parts")


def set_up_logging(*, verbose: bool = False) -> None:
    """Send the worker's own events to stderr, one line each, and silence the libraries.

    The worker reports what matters to an operator (a broker that does not answer) in its own words.
    `verbose` shows everything, with tracebacks.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_OneLine("%(asctime)s %(levelname)s %(message)s", "%Y-%m-%d %H:%M:%S"))
    logging.basicConfig(
        level=logging.DEBUG if verbose else logging.WARNING, handlers=[handler], force=True
    )
    logging.getLogger("ldpstream").setLevel(logging.DEBUG if verbose else logging.INFO)
    for name in _NOISY:
        logging.getLogger(name).setLevel(logging.INFO if verbose else logging.CRITICAL + 1)


class _OneLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        # Tracebacks are only for debugging.
        return text if record.levelno == logging.DEBUG else text.splitlines()[0]
