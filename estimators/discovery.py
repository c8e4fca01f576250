"""Unknown words, round by round: what is asked about next, and which words there are in the end.

Rounds but the last keep the prefixes of the largest estimates, however uncertain these are: what is
kept by chance costs little, since the last round asks other devices about the words kept alone.
Its bounds hold for all of them and `other` together, so that with the stated confidence no word is
listed that nobody has (docs/theory.md, section 13).
"""

from collections.abc import Mapping, Sequence

from ldpstream.mechanisms.domains.words import Round, Words


def first_round(start_ms: int, window_ms: int) -> Round:
    """Return what the first round of a run asks about, which starts then."""
    return Round(0, start_ms, start_ms + window_ms, ("",))


def looked_at(words: Words) -> int:
    """Return how many of the largest estimates hold the prefixes that are kept.

    The numbers that a round does not use are among them, as often as their noise is as large.
    """
    return min(words.size, 8 * words.kept + 1)


def next_round(words: Words, shares: Mapping[int, float]) -> Round:
    """Return the round after that of `words`, which asks about the largest of these shares.

    `shares` are estimates by number, of all values or of the largest ones.

    Raises:
        ValueError: where `words` has no round, or the last one.
    """
    asked = _asked(words)
    if asked.number == words.rounds - 1:
        raise ValueError("expected a round before the last")
    numbers = sorted(shares, key=lambda number: (-shares[number], number))
    found = [one for one in words.candidates(numbers) if one is not None][: words.kept]
    length_ms = asked.end_ms - asked.start_ms
    # In order, so that a list does not tell more than which ones they are.
    return Round(asked.number + 1, asked.end_ms, asked.end_ms + length_ms, tuple(sorted(found)))


def confirmed(words: Words, lows: Sequence[float]) -> list[int]:
    """Return the numbers of the words that somebody has: those whose lower bounds are above 0.

    `lows` are simultaneous bounds of the last round, of each of its words in their order, and of
    `other`.

    Raises:
        ValueError: where `words` is in another round, or there is not one bound for each.
    """
    asked = _asked(words)
    if asked.number != words.rounds - 1 or len(lows) != len(asked.prefixes) + 1:
        raise ValueError("expected the last round, and a bound for each of its words and other")
    return [number for number in range(len(asked.prefixes)) if lows[number] > 0.0]


def _asked(words: Words) -> Round:
    if words.round is None:
        raise ValueError("expected words in a round")
    return words.round
