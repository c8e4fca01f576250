"""Where an unexpected error stops: at the collection that it is about."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

_MOST_CHARACTERS: Final = 1_000
"""An error may quote all of what it is about."""

log = logging.getLogger(__name__)


@contextmanager
def contained(failed: Callable[[str], None]) -> Iterator[None]:
    """Call `failed` with what went wrong where the block ends by an error, and go on after it.

    For what a reader of several collections calls of one of them: the others go on.
    """
    try:
        yield
    except Exception as error:  # noqa: BLE001 (whatever it is, others have no part in it)
        tell(failed, error)


def tell(failed: Callable[[str], None], error: BaseException) -> None:
    """Call `failed` with an error that nobody expected, in words for an operator."""
    log.debug("a part of the pipeline failed", exc_info=error)
    failed(f"internal error: {error!r}"[:_MOST_CHARACTERS])
