"""Unknown words: what rounds ask about, what devices refuse, and what is kept and listed."""

import itertools
import json
from collections import Counter
from pathlib import Path

import pytest

from ldpstream.estimators.discovery import confirmed, first_round, looked_at, next_round
from ldpstream.mechanisms import CollectionSpec
from ldpstream.mechanisms.base.errors import SpecError, ValueOutsideDomainError
from ldpstream.mechanisms.domains.words import Round, Words, bits_word, word_bits
from ldpstream.mechanisms.exact.entropy import SystemEntropy
from ldpstream.mechanisms.ledger import BudgetError, Ledger, LedgerError, SkippedError
from ldpstream.mechanisms.wire.rounds import in_round, round_document, words_of
from tests.exact.ledgers import HOUR_MS

VECTORS = Path(__file__).resolve().parents[2] / "vectors"
ROUNDS = 3
RUN_MS = ROUNDS * HOUR_MS
START_MS = 100_000 * RUN_MS


def spec(epsilon: float = 4.0, **words: int) -> CollectionSpec:
    table = {"bits": 16, "rounds": ROUNDS, "kept": 4, **words}
    keys = {"mechanism": "projective-geometry", "epsilon": epsilon, "domain": {"words": table}}
    return CollectionSpec.from_mapping("words", keys, base=Path())


def asked(number: int, *prefixes: str, run: int = 0) -> Round:
    start_ms = START_MS + run * RUN_MS + number * HOUR_MS
    return Round(number, start_ms, start_ms + HOUR_MS, prefixes)


@pytest.mark.parametrize(
    ("bits", "rounds", "kept", "lengths", "size"),
    [
        (32, 4, 64, (14, 23, 32, 32), 32_769),
        (16, 3, 4, (9, 16, 16), 513),
        (16, 2, 64, (16, 16), 65_537),
        (24, 3, 99, (15, 24, 24), 99 * 512 + 1),
        (8, 3, 99, (7, 8, 8), 199),
    ],
)
def test_rounds_ask_about_as_many_each(
    bits: int, rounds: int, kept: int, lengths: tuple[int, ...], size: int
):
    words = Words(bits, rounds, kept)
    assert (words.lengths, words.size) == (lengths, size)
    asked_about = [1 << lengths[0], *(kept << words.extension(n) for n in range(1, rounds))]
    assert max(asked_about) == words.other


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"bits": 12}, "words.bits: expected a multiple of 8, got 12"),
        ({"rounds": 1}, "words.rounds: expected a whole number from 2 to 17, got 1"),
        ({"rounds": 10, "kept": 1}, "words.rounds: expected fewer for 16 bits, got 10"),
        ({"bits": 64}, "words.rounds: expected more rounds, or fewer bits"),
        ({"kept": 100}, "words.kept: expected a whole number from 1 to 99, got 100"),
        ({"letters": 4}, "words.letters: expected one of the keys bits, kept, rounds"),
    ],
)
def test_impossible_words_are_refused_by_name(table: dict[str, int], said: str):
    with pytest.raises(SpecError) as error:
        spec(**table)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"mechanism": "l1-geometric"}, "mechanism: expected one of block-hadamard, projective"),
        ({"hold": 2}, "hold: expected no such key with words"),
        ({"domain": {"words": {"bits": 8}, "blocks": 2}}, "domain.blocks: expected no blocks"),
    ],
)
def test_settings_that_do_not_protect_all_words_alike_are_refused(
    keys: dict[str, object], said: str
):
    table = {"mechanism": "randomized-response", "epsilon": 1.0, "domain": {"words": {"bits": 8}}}
    with pytest.raises(SpecError) as error:
        CollectionSpec.from_mapping("words", {**table, **keys}, base=Path())
    assert said in str(error.value)


def test_every_word_is_placed_at_its_candidate_or_other():
    """All words of two bytes, through all rounds: each extension has a number of its own."""
    words = Words(16, 3, 4)
    texts = [bytes(pair) for pair in itertools.product((0x41, 0xC3, 0xFF), repeat=2)]
    bits = {text: word_bits(text, 16) for text in texts}
    for number, prefixes in enumerate([("",), ("010000010", "111111111"), (bits[texts[0]],)]):
        own = words.in_round(asked(number, *prefixes))
        places = own.place(texts, entropy=SystemEntropy())
        found = own.candidates(places.tolist())
        for text, candidate in zip(texts, found, strict=True):
            whole = bits[text][: words.lengths[number]]
            assert candidate == (whole if whole.startswith(prefixes) else None)
        every = [one for one in own.candidates(range(own.size)) if one is not None]
        assert len(set(every)) == len(every) == len(prefixes) << own.extension(number)
        assert own.candidates([own.other]) == [None]
    assert [bits_word(bits[text]) for text in texts[:3]] == ["AA", "A\\xc3", "A\\xff"]


def test_words_are_texts_and_longer_ones_are_other():
    own = Words(16, 2).in_round(first_round(0, 1))
    assert own.place(["é", "", "abc"], entropy=SystemEntropy()).tolist() == [0xC3A9, 0, own.other]
    assert own.place_columns([["ab"]], entropy=SystemEntropy()).tolist() == [0x6162]
    for wrong in (7, None, "a\0", "\ud800"):
        with pytest.raises(ValueOutsideDomainError, match="position 1"):
            own.check(["a", wrong])
    with pytest.raises(SpecError, match=r"words are placed in the round's spec"):
        Words(16, 2).check(["a"])


def test_a_round_has_the_spec_that_the_device_has_fixed():
    own = spec()
    found = in_round(own, round_document(own, asked(1, "0" * 9, "1" * 9)))
    assert (found.fingerprint, found.mechanism) == (own.fingerprint, own.mechanism)
    assert words_of(found).round == asked(1, "0" * 9, "1" * 9)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"fingerprint": spec(8.0).fingerprint.hex()}, "the spec that this device has fixed"),
        ({"fingerprint": spec(rounds=4).fingerprint.hex()}, "this device has fixed"),
        ({"fingerprint": None}, "this device has fixed, got none"),
        ({"round": ROUNDS}, "expected one of the rounds 0 to 2, got 3"),
        ({"round": 2}, "expected at most 4 different texts of 16 digits 0 and 1"),
        ({"round": True}, "expected whole numbers"),
        ({"start_ms": START_MS}, "expected the window of round 1, got another"),
        ({"start_ms": START_MS, "end_ms": START_MS}, "expected the window of round 1"),
        ({"prefixes": ["0" * 8]}, "different texts of 9 digits"),
        ({"prefixes": ["0" * 9] * 2}, "different texts of 9 digits"),
        ({"prefixes": [f"{one:09b}" for one in range(5)]}, "at most 4 different texts"),
        ({"prefixes": ["00000000x"]}, "texts of 9 digits 0 and 1"),
        ({"prefixes": [0]}, "round.prefixes: expected a list of texts"),
        ({"epsilon": 8}, "round.epsilon: expected one of the keys"),
    ],
)
def test_a_device_refuses_rounds_beyond_what_it_has_fixed(change: dict[str, object], said: str):
    own = spec()
    with pytest.raises(SpecError) as error:
        in_round(own, round_document(own, asked(1, "0" * 9)) | change)
    assert said in str(error.value)


def test_words_are_placed_as_in_the_vectors():
    vectors = json.loads((VECTORS / "words.json").read_text())
    own = spec()
    assert vectors["device"] == own.device_document()
    for one in vectors["rounds"]:
        found = in_round(own, one["document"])
        labels, places = zip(*one["places"], strict=True)
        assert found.domain.place(labels, entropy=SystemEntropy()).tolist() == list(places)
    for document in vectors["refused"]:
        with pytest.raises(SpecError):
            in_round(own, document)


def test_a_device_reports_once_in_the_round_of_its_secret(tmp_path: Path):
    own, rounds = spec(), Counter()
    for number in range(12):
        file = tmp_path / f"{number}"
        for run, step in itertools.product(range(2), range(ROUNDS)):
            prefixes = [""] if step == 0 else ["0" * own.domain.lengths[step - 1]]
            bound = in_round(own, round_document(own, asked(step, *prefixes, run=run)))
            time_ms = words_of(bound).round.start_ms
            # The file is all that a device remembers.
            with Ledger(file, specs=[(own, HOUR_MS)], budget="4") as ledger:
                try:
                    first = ledger.release(bound, "ab", time_ms=time_ms)
                except SkippedError:
                    assert not ledger.takes_part(own, time_ms=time_ms)
                    continue
                except BudgetError:
                    assert run == 1
                    continue
                assert ledger.takes_part(own, time_ms=time_ms)
                again = ledger.release(bound, "zz", time_ms=time_ms + 1)
                assert again.payload.tobytes() == first.payload.tobytes()
                rounds[step] += 1
        with Ledger(file, specs=[(own, HOUR_MS)], budget="8") as ledger:
            assert ledger.spent().total == 4
    # All 12 are in one of three rounds with probability 6e-6.
    assert rounds.total() == 12
    assert len(rounds) > 1


def test_a_ledger_refuses_another_window_and_budgets_that_begin_again(tmp_path: Path):
    own = spec()
    for options in ({"horizon_ms": RUN_MS}, {"horizon_ms": RUN_MS, "spread": True}):
        with pytest.raises(LedgerError, match="expected a budget for ever, without horizon"):
            Ledger(tmp_path / "other", specs=[(own, HOUR_MS)], budget=4, **options)
    bound = in_round(own, round_document(own, asked(0, "")))
    with Ledger(tmp_path / "ledger", specs=[(own, HOUR_MS)], budget=400) as ledger:
        times_ms = (START_MS + number * HOUR_MS for number in range(1, 40))
        # A window of another round's, in which it takes part.
        time_ms = next(one for one in times_ms if ledger.takes_part(own, time_ms=one))
        with pytest.raises(
            LedgerError, match="expected a time in the window of round 0, from 2004"
        ):
            ledger.release(bound, "ab", time_ms=time_ms)
        assert not ledger.spent().windows


def test_the_largest_estimates_are_kept_and_simultaneous_bounds_list():
    words = Words(16, 3, 4).in_round(first_round(START_MS, HOUR_MS))
    assert words.lengths == (9, 16, 16)
    shares = {3: 0.1, 400: -0.2, 17: 0.05, words.other: 0.9, 300: 0.049, 6: -0.1, 8: -0.2}
    second = next_round(words, shares)
    assert second == asked(1, *(f"{one:09b}" for one in (3, 6, 17, 300)))
    words = words.in_round(second)
    third = next_round(words, {5: 0.1, 3 * 128 - 1: 0.2, words.other: 0.9})
    assert third == asked(2, f"{3:09b}{5:07b}", f"{17:09b}{127:07b}")
    last = words.in_round(third)
    assert confirmed(last, [0.0, 1e-9, 0.5]) == [1]
    assert looked_at(words) == 33
    for call in (lambda: next_round(last, {}), lambda: confirmed(words, [0.0] * 3)):
        with pytest.raises(ValueError, match="last"):
            call()
