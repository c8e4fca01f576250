"""Set up a worker's log on the console: one line for each event, without repetition."""

import json
import logging
import os
import sys
from typing import Final

from ldpstream.mechanisms.base.times import format_time

# A Faust service logs under the module of its class: ours are in faust_parts.
FORMAT_VARIABLE: Final = "LDPSTREAM_LOG"
"""Where it is `json`, each line is a JSON object; otherwise it is text."""
_TEXT: Final = "%(asctime)s %(levelname)s %(message)s"
_NOISY: Final = ("aiokafka", "faust", "mode", "asyncio", "aiohttp", "ldpstream.agents.faust_parts")


def set_up_logging(*, verbose: bool = False) -> None:
    """Log the worker's own events to stderr, one line each, and silence the libraries.

    The worker itself reports what matters to an operator, such as a broker that does not answer.
    `verbose` shows everything, with tracebacks.
    """
    handler = logging.StreamHandler(sys.stderr)
    formatter = _Json if os.environ.get(FORMAT_VARIABLE) == "json" else _OneLine
    handler.setFormatter(formatter(_TEXT, "%Y-%m-%d %H:%M:%S"))
    logging.basicConfig(
        level=logging.DEBUG if verbose else logging.WARNING, handlers=[handler], force=True
    )
    logging.getLogger("ldpstream").setLevel(logging.DEBUG if verbose else logging.INFO)
    for name in _NOISY:
        logging.getLogger(name).setLevel(logging.INFO if verbose else logging.CRITICAL + 1)


class _OneLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        # Only debug messages keep their traceback.
        return text if record.levelno == logging.DEBUG else text.splitlines()[0]


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        event = {
            "time": format_time(int(record.created * 1000)),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info and record.levelno == logging.DEBUG:
            event["traceback"] = self.formatException(record.exc_info)
        return json.dumps(event, ensure_ascii=False)
