"""Discovery of unknown words over several windows, prefix by prefix.

Each round but the last asks about extensions of the prefixes that the round before has kept; the
last round asks about the words that are left and extends nothing. A device takes part in one round.
The prefixes of a round are not part of the spec: devices read them when the round begins, and
whatever they are, a report keeps epsilon.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from ldpstream.mechanisms.base.arrays import Indices, unmasked
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.base.checks import check_keys, describe, is_whole
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.base.texts import canonical_text
from ldpstream.mechanisms.domains.base import MAX_VALUES
from ldpstream.mechanisms.domains.lattice import Lattice
from ldpstream.mechanisms.exact.entropy import Entropy

_MAX_WORD_BITS: Final = 1_024
_MAX_KEPT: Final = 99
"""Most prefixes that a round keeps; the last round asks about all of them, and `other`, at once."""
MECHANISMS: Final = (
    "block-hadamard",
    "projective-geometry",
    "randomized-response",
    "subset-selection",
)
"""The mechanisms that protect every value equally from every other."""


@dataclass(frozen=True)
class Round:
    """What one round asks about in its window: prefixes, which are texts of the digits 0 and 1."""

    number: int
    start_ms: int
    end_ms: int
    prefixes: tuple[str, ...]


@dataclass(frozen=True)
class Words(Lattice):
    """Texts of at most `bits / 8` bytes of UTF-8, found in this many rounds.

    The values number what a round asks about: all extensions of each prefix, then unused numbers,
    and last one value for all other words. Without a `round` no word can be placed, and the labels
    of estimates are these numbers.
    """

    bits: int
    rounds: int = 4
    kept: int = 64
    round: Round | None = field(default=None, compare=False)
    ordered: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for key, least, most in (
            ("bits", 8, _MAX_WORD_BITS),
            ("rounds", 2, self.bits + 1 if is_whole(self.bits) else 2),
            ("kept", 1, _MAX_KEPT),
        ):
            number = getattr(self, key)
            if not is_whole(number) or not least <= number <= most:
                what = f"a whole number from {least} to {most}, got {describe(number)}"
                raise SpecError(f"words.{key}", what)
        if self.bits % 8:
            raise SpecError("words.bits", f"a multiple of 8, got {self.bits}")
        if self.lengths[0] < 1:
            raise SpecError("words.rounds", f"fewer for {self.bits} bits, got {self.rounds}")
        if self.size > MAX_VALUES:
            what = (
                f"more rounds, or fewer bits: one round asks about {MAX_VALUES:,} prefixes at most"
            )
            raise SpecError("words.rounds", what)

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """The number of bits of the prefixes that each round asks about.

        All rounds ask about equally many prefixes. The first extends none, so that its prefixes can
        be longer.
        """
        learning = self.rounds - 1
        first = self.kept.bit_length() - 1
        step = max(1, -(-(self.bits - first) // learning))
        ahead = (self.bits - step * (learning - 1 - number) for number in range(learning))
        return (*ahead, self.bits)

    def extension(self, number: int) -> int:
        """Return by how many bits a round extends the prefixes it is given; the last by 0."""
        return self.lengths[number] - (self.lengths[number - 1] if number else 0)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The number of prefixes of the largest round, plus one for all other words."""
        later = (self.kept << self.extension(number) for number in range(1, self.rounds))
        return (max(1 << self.lengths[0], *later) + 1,)

    @property
    def expected(self) -> str:
        """What a word must be, for error messages; without a round labels are numbers."""
        return super().expected if self.round is None else "a text without U+0000"

    @property
    def other(self) -> int:
        """The value that stands for all words that a round does not ask about."""
        return self.size - 1

    def canonical(self) -> Json:
        """Return what is fixed before the first round: bits, rounds, and how many are kept."""
        return {"words": {"bits": self.bits, "kept": self.kept, "rounds": self.rounds}}

    def check_use(self, table: Mapping[str, object], path: str, *, in_blocks: bool) -> None:
        """Refuse settings under which words would not all be protected equally, one report each."""
        if table.get("mechanism") not in MECHANISMS:
            raise SpecError(f"{path}.mechanism", f"one of {', '.join(MECHANISMS)} for words")
        if in_blocks:
            raise SpecError(f"{path}.domain.blocks", "no blocks with words: none is disclosed")
        if table.get("workload") == "published":
            raise SpecError(f"{path}.workload", "no such key with words, which are not known yet")
        if "hold" in table:
            raise SpecError(f"{path}.hold", "no such key with words: a device reports once")

    def in_round(self, current: Round) -> Self:
        """Return the same domain in a round.

        Raises:
            SpecError: if there is no such round, or it cannot ask about these prefixes.
        """
        if not 0 <= current.number < self.rounds:
            last = self.rounds - 1
            raise SpecError("round", f"one of the rounds 0 to {last}, got {current.number}")
        length = self.lengths[current.number - 1] if current.number else 0
        whole = all(len(prefix) == length and not prefix.strip("01") for prefix in current.prefixes)
        several = self.kept if current.number else 1
        distinct = len(set(current.prefixes)) == len(current.prefixes)
        if not (whole and distinct and len(current.prefixes) <= several):
            what = f"at most {several} different texts of {length} digits 0 and 1"
            raise SpecError("prefixes", what)
        return replace(self, round=current)

    def candidates(self, numbers: Sequence[int]) -> list[str | None]:
        """Return the prefix of each number; None for `other` and for unused numbers."""
        current = self._current_round
        extension = self.extension(current.number)
        prefixes: list[str | None] = []
        for number in numbers:
            prefix, rest = divmod(number, 1 << extension)
            tail = f"{rest:0{extension}b}" if extension else ""
            inside = number < self.other and prefix < len(current.prefixes)
            prefixes.append(current.prefixes[prefix] + tail if inside else None)
        return prefixes

    def check(self, labels: Sequence[Any] | NDArray[Any]) -> None:
        self._places(labels)

    def place(self, labels: Sequence[Any] | NDArray[Any], *, entropy: Entropy) -> Indices:
        """Return the numbers of n words, texts or bytes, in the round.

        A word longer than `bits` counts as `other`.

        Raises:
            ValueOutsideDomainError: for a label that is not a text, or holds U+0000.
            SpecError: without a round.
        """
        del entropy
        return self._places(labels)

    def parse_columns(self, rows: Sequence[Sequence[str]]) -> Indices:
        """Do the same for rows of one column each; without a round rows hold numbers."""
        if self.round is None:
            return super().parse_columns(rows)
        return self._places([row[0] if len(row) == 1 else None for row in rows])

    def _places(self, labels: Sequence[Any] | NDArray[Any]) -> Indices:
        if isinstance(labels, str | bytes):
            raise TypeError("expected a sequence of words, got a single text")
        current = self._current_round
        prefixes = {prefix: place for place, prefix in enumerate(current.prefixes)}
        length, extension = self.lengths[current.number], self.extension(current.number)
        places = np.full(len(labels), self.other, dtype=np.int64)
        for position, label in enumerate(unmasked(labels)):
            word = _bytes_of(label)
            if word is None or 0 in word:
                raise self.outside(position)
            if 8 * len(word) > self.bits:
                continue
            bits = word_bits(word, self.bits)
            prefix = prefixes.get(bits[: length - extension])
            if prefix is not None:
                rest = bits[length - extension : length]
                places[position] = (prefix << extension) + int(rest or "0", 2)
        return places

    @property
    def _current_round(self) -> Round:
        if self.round is None:
            raise SpecError(
                "domain.words", "what a round asks about: words are placed in the round's spec"
            )
        return self.round


def _bytes_of(label: object) -> bytes | None:
    """Return a word in UTF-8; None for what cannot be encoded, such as a lone surrogate.

    Texts are spelled in NFC first, so that a word is one word however it is typed.
    """
    if isinstance(label, str):
        try:
            return canonical_text(label).encode()
        except UnicodeEncodeError:
            return None
    return label if isinstance(label, bytes) else None


def word_bits(word: bytes, bits: int) -> str:
    """Return the bytes of a word as digits 0 and 1, padded with zeros to this many.

    >>> word_bits(b"a", 16)
    '0110000100000000'
    """
    return format(int.from_bytes(word, "big") << (bits - 8 * len(word)), f"0{bits}b")


def bits_word(bits: str) -> str:
    r"""Return the word that digits 0 and 1 spell.

    Devices choose the bytes: those that are not UTF-8 or not printable are written as `\xff`.

    >>> bits_word("0110000100000000")
    'a'
    """
    raw = int(bits, 2).to_bytes(len(bits) // 8, "big")
    text = raw.rstrip(b"\0").decode("utf-8", "backslashreplace")
    return "".join(
        character if character.isprintable() else repr(character)[1:-1] for character in text
    )


def read_words(raw: object) -> Words:
    """Return the domain of the key `words` of a `domain` table."""
    if not isinstance(raw, dict):
        raise SpecError("words", f"a table with bits, got {describe(raw)}")
    table: dict[str, Any] = check_keys(raw, frozenset(("bits", "rounds", "kept")), "words")
    if "bits" not in table:
        raise SpecError("words.bits", "a multiple of 8")
    return Words(**table)
