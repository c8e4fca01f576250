"""Mistakes that users make, and how each is made."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

CONFIGURATION: Final = """\
[kafka]
bootstrap = "127.0.0.1:1"
[worker]
http = "127.0.0.1:0"
[collection.modes]
mechanism = "block-hadamard"
epsilon = 1.0
domain = { values = ["bus", "train", "car"] }
minimum = 1
[collection.places]
mechanism = "block-hadamard"
epsilon = 1.0
domain = { grid = [4, 6], blocks = [2, 3] }
[collection.ages]
mechanism = "l1-geometric"
epsilon = 1.0
domain = { interval = [0.0, 100.0], bins = 10 }
window = { size = "1h", hop = "30m" }
publish = { quantiles = [0.5] }
"""
FILE: Final = "ldpstream.toml"
URL: Final = "http://127.0.0.1:6066"
"""The worker that is queried; its real address takes the place of this one."""


@dataclass(frozen=True)
class Mistake:
    """A wrong command, with the files and the input that it gets."""

    what: str
    command: str
    stdin: str = ""
    files: Mapping[str, str] = field(default_factory=dict)


def configured(what: str, *changes: tuple[str, str], command: str = "certify modes") -> Mistake:
    """A mistake in the configuration: each change replaces a text by another."""
    text = CONFIGURATION
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    return Mistake(what=what, command=command, files={FILE: text})


def values(what: str, stdin: str, command: str = "privatize modes") -> Mistake:
    """A mistake in the input."""
    return Mistake(what=what, command=command, stdin=stdin)


MODES: Final = 'domain = { values = ["bus", "train", "car"] }'
RECORDS: Final = (
    "domain = { attributes = { age = { size = 5 }, mode = { size = 3 } }, "
    'pairs = [["mode", "HOW"]] }'
)
WORDS: Final = "domain = { words = { bits = 16, rounds = 2 } }"
NOW: Final = "2026-11-23T10:00:00Z"

MISTAKES: Final[Mapping[str, tuple[Mistake, ...]]] = {
    "Configuration": (
        Mistake("no configuration at all", "certify -c none.toml modes"),
        configured("a bracket is missing", ("[kafka]", "[kafka")),
        configured("a key is misspelt", ("epsilon = 1.0", "epsilom = 1.0")),
        configured("a table is misspelt", ("[collection.modes]", "[colection.modes]")),
        configured("an unknown mechanism", ("block-hadamard", "hadamard")),
        configured("no epsilon", ("epsilon = 1.0\n", "")),
        configured("epsilon is 0", ("epsilon = 1.0", "epsilon = 0")),
        configured("epsilon is a text", ("epsilon = 1.0", 'epsilon = "1"')),
        configured("no domain", (MODES + "\n", "")),
        configured("a label twice", ('"train", "car"', '"bus", "car"')),
        configured("a domain of one value", ('["bus", "train", "car"]', '["bus"]')),
        configured(
            "blocks of another shape than the grid", ("blocks = [2, 3]", "blocks = [2, 3, 4]")
        ),
        configured("a duration without a unit", ('size = "1h"', "size = 60")),
        configured("a duration in words", ('size = "1h"', 'size = "1 hour"')),
        configured("windows that leave gaps", ('hop = "30m"', 'hop = "2h"')),
        configured("quantiles of labels", (MODES, f"{MODES}\npublish = {{ quantiles = [0.5] }}")),
        configured(
            "a published range that ends outside the domain",
            ("publish = { q", "publish = { ranges = { old = [90, 120] }, q"),
        ),
        configured(
            "an unknown sensitive label",
            ('"block-hadamard"', '"high-low"'),
            (MODES, f'{MODES}\nsensitive = ["tram"]'),
        ),
        configured("no partition", ("minimum = 1", "partitions = 0")),
        configured(
            "two collections on one topic",
            ("minimum = 1", 'topic = "reports"'),
            ("[collection.ages]", 'topic = "reports"\n[collection.ages]'),
        ),
        configured("a bootstrap with an impossible port", ("127.0.0.1:1", "broker:99999")),
        configured(
            "a Kafka setting that does not exist", ("[worker]", "acks_all = true\n[worker]")
        ),
        configured(
            "a secret from a variable that is not set",
            ("[worker]", '[worker]\ntoken = { env = "NO_SUCH_TOKEN" }'),
            command="check",
        ),
        configured("a short token", ("[worker]", '[worker]\ntoken = "secret"'), command="check"),
        configured(
            "serving the network without a token", ("127.0.0.1:0", "0.0.0.0:6066"), command="check"
        ),
        configured(
            "a pair with an attribute that does not exist", (MODES, RECORDS.replace("HOW", "how"))
        ),
        configured(
            "a pair with budgets by distance",
            (
                MODES,
                RECORDS.replace("HOW", "age").replace(
                    "= 5", '= 5, mechanism = "l1-geometric", epsilon = 0.5'
                ),
            ),
        ),
        configured("words of half a byte", (MODES, WORDS.replace("16", "20"))),
        configured(
            "words with a budget for every day",
            (MODES, WORDS),
            command="send --ledger me.ledger --budget 1 --horizon 1d modes",
        ),
        configured("two mistakes at once", ("1.0", "-1"), ("[2, 3]", "[2]")),
        Mistake("a collection that does not exist", "certify mode"),
    ),
    "Values": (
        values("a value outside the domain", "bus\ntram\n"),
        values("a header that nobody declared", "mode\nbus\n"),
        values("a number outside the interval", "20\n101\n", "privatize ages"),
        values("a value that is not a number", "nan\n", "privatize ages"),
        values("a decimal comma", "20,5\n", "privatize ages"),
        values("one coordinate of two", "3\n", "privatize places"),
        values("semicolons between coordinates", "3;2\n", "privatize places"),
        values("an empty line", "bus\n\nbus\n"),
        values("many bad lines", "tram\n" * 3 + "bus\n"),
        values("a column that the file lacks", "id,how\n1,bus\n", "privatize --columns mode modes"),
        values("clamping labels", "bus\n", "privatize --clamp modes"),
        values("a quote that is never closed", 'bus\n"car\n'),
    ),
    "Times": (
        values("seconds instead of milliseconds", "1795255200,bus\n", "privatize --times modes"),
        values("no time in the line", "bus\n", "privatize --times modes"),
        values("a time without a zone", "2026-11-21T10:00:00,bus\n", "privatize --times modes"),
        values(
            "a date that does not exist", "2026-02-30T10:00:00Z,bus\n", "privatize --times modes"
        ),
        values("a time years ago", "2019-11-21T10:00:00Z,bus\n", "privatize --times modes"),
        values("a time years ahead", "2099-11-21T10:00:00Z,bus\n", "privatize --times modes"),
        Mistake("a replay without times", "privatize --replay modes", "bus\n"),
        Mistake("an end in words", "close --until yesterday modes"),
    ),
    "Files and options": (
        Mistake("a file that does not exist", "privatize modes none.csv"),
        Mistake("a folder instead of a file", "privatize modes ."),
        Mistake("no collection named", "estimate"),
        Mistake("an option that does not exist", "estimate --tops 3 modes"),
        Mistake("no reports at all", "estimate modes"),
        values("values instead of reports", "bus\n", "estimate modes"),
        values("half a line of a report", '{"fingerprint": "00', "estimate modes"),
        Mistake("a confidence in percent", "estimate --confidence 95 modes"),
        Mistake("finals into a table of another kind", "finals --to finals.csv modes"),
        Mistake("a domain's file that does not exist", "certify -c file.toml modes"),
        Mistake("a channel's file that does not exist", "certify -c channel.toml modes"),
        Mistake("a plan for nobody", "plan modes --respondents 0"),
        Mistake("a file that is not a ledger", f"ledger {FILE}"),
        Mistake("discovering words in a domain of known values", "discover modes"),
        Mistake("a command that does not exist", "estimates"),
        Mistake("a file that is there already", f"init {FILE}"),
        Mistake("a part of the keys", "keys collection"),
        Mistake("a collection that the file lacks", "spec trips"),
        Mistake("a shard beyond the last", "worker --shard 3/2"),
        Mistake("a folder instead of a back-up", "backup modes ."),
        Mistake("a back-up that does not exist", "reset --restore none.backup --yes modes"),
        Mistake("a continued state that is erased", "reset --restore x --erase --yes modes"),
        Mistake("no reports a second", "simulate --rate 0 modes"),
        Mistake("a port beyond the last", "devbroker --port 99999"),
        Mistake("a demonstration of no time", "demo --seconds 0"),
    ),
    "Brokers": (
        Mistake("no broker listens there", "check"),
        values("values for a broker that is away", "bus\n", "send modes"),
        Mistake("a login without a password", "check -c login.toml"),
        Mistake("a certificate's file that does not exist", "check -c tls.toml"),
    ),
    "Queries to a worker": (
        Mistake("no worker answers there", "query http://127.0.0.1:1 modes"),
        Mistake("an address without http", "query 127.0.0.1:6066 modes"),
        Mistake("a status of an address without http", "status 127.0.0.1:6066"),
        Mistake("a collection that it does not have", f"query {URL} mode"),
        Mistake("no window yet", f"query {URL} rides"),
        Mistake("a range outside the domain", f"query {URL} city --range 0..9,0..99"),
        Mistake("one dimension of two", f"query {URL} city --range 0..3"),
        Mistake("a quantile of no share", f"query {URL} city --quantile 1.5"),
        Mistake("a negative number of values", f"query {URL} city --top -1"),
        Mistake("an unknown method", f"query {URL} city --method wilson"),
        Mistake("a span with a start alone", f"query {URL} city --start {NOW}"),
        Mistake(
            "a span that is not of whole panes",
            f"query {URL} city --start 2026-11-21T10:00:30Z --end 2026-11-21T10:01:00Z",
        ),
        Mistake("a day instead of a time", f"query {URL} city --from 2026-11-22"),
        Mistake(
            "an end before the start",
            f"query {URL} city --start 2026-11-21T10:02:00Z --end 2026-11-21T10:01:00Z",
        ),
        Mistake("two ways to choose windows", f"query {URL} city --last 2 --all"),
        Mistake("a fingerprint of another collection", f"query {URL} city --fingerprint 00"),
    ),
}
OTHERS: Final = {
    FILE: CONFIGURATION,
    "file.toml": CONFIGURATION.replace(MODES, 'domain = { file = "none.csv" }'),
    "channel.toml": CONFIGURATION.replace(
        f'"block-hadamard"\nepsilon = 1.0\n{MODES}',
        f'"optimal"\nchannel = "none.json"\n{MODES}',
    ),
    "login.toml": CONFIGURATION.replace(
        "[worker]", 'security_protocol = "SASL_PLAINTEXT"\nsasl_mechanism = "PLAIN"\n[worker]'
    ),
    "tls.toml": CONFIGURATION.replace(
        "[worker]", 'security_protocol = "SSL"\nssl_cafile = "none.pem"\n[worker]'
    ),
}
"""Files that every command finds."""
