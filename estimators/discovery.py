"""Discovery of unknown words: the prefixes of the next round, and the words that are confirmed.

Every round but the last keeps the prefixes with the largest estimates, however uncertain they are.
Keeping one by chance costs little, since the last round asks other devices about the kept words
only. Its bounds hold simultaneously for all of these and `other`, so that with the stated
confidence no word is listed that nobody has. docs/theory.md, section 13, has what a device loses.
"""

from collections.abc import Mapping, Sequence

from ldpstream.mechanisms.domains.words import Round, Words


def first_round(start_ms: int, window_ms: int) -> Round:
    """Return the first round of a run that starts at a time."""
    return Round(0, start_ms, start_ms + window_ms, ("",))


def looked_at(words: Words) -> int:
    """Return how many of the largest estimates to search for the prefixes to keep.

    Unused numbers of a round are among them if their noise is large enough.
    """
    return min(words.size, 8 * words.kept + 1)


def next_round(words: Words, shares: Mapping[int, float]) -> Round:
    """Return the round after that of `words`, with the prefixes that have the largest shares.

    `shares` maps numbers to estimates, of all values or of the largest ones.

    Raises:
        ValueError: if `words` has no round, or the last one.
    """
    current = _current_round(words)
    if current.number == words.rounds - 1:
        raise ValueError("expected a round before the last")
    numbers = sorted(shares, key=lambda number: (-shares[number], number))
    frequent = [text for text in words.candidates(numbers) if text is not None][: words.kept]
    length_ms = current.end_ms - current.start_ms
    # Sorted, so that the order reveals nothing about the estimates.
    return Round(
        current.number + 1, current.end_ms, current.end_ms + length_ms, tuple(sorted(frequent))
    )


def confirmed(words: Words, lows: Sequence[float]) -> list[int]:
    """Return the numbers of the words that somebody has, whose lower bounds are above 0.

    `lows` are simultaneous bounds of the last round, for each of its words in order and for
    `other`.

    Raises:
        ValueError: if `words` is in another round, or there is not one bound for each.
    """
    current = _current_round(words)
    if current.number != words.rounds - 1 or len(lows) != len(current.prefixes) + 1:
        raise ValueError("expected the last round, and a bound for each of its words and other")
    return [number for number in range(len(current.prefixes)) if lows[number] > 0.0]


def _current_round(words: Words) -> Round:
    if words.round is None:
        raise ValueError("expected words in a round")
    return words.round
