"""The reasons that workers give for waits, against what the day knows to be true."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

from ldpstream.mechanisms.base.times import parse_time
from tests.crash.day.counts import Finals
from tests.crash.day.setting import GRACE_SECONDS, IDLE_SECONDS, Span

_TEXT: Final = re.compile(
    r"(?P<name>\w+)(?: \((?P<print>[0-9a-f]+)\))?(?: has stopped)?: "
    r"(?:windows up to (?P<end>\S+) wait for partition (?P<partition>\d+)"
    r"(?: for [\d,]+ s longer than usual)?: )?(?P<reason>.*)",
    re.DOTALL,
)
_TOLERANCE_SECONDS: Final = 2.5
"""Between what happens and what is told of it, on a busy machine."""
_BRIEF_SECONDS: Final = 8.0
"""How long what always passes may be told while no worker comes or goes."""


@dataclass(frozen=True)
class Told:
    """A reason that a worker gave.

    `name`, `fingerprint` and `reason` are empty if it is none of a collection; `partition` and
    `end` (seconds) are those of a wait. `owned` says whether the worker owns that partition, None
    where that changed meanwhile.
    """

    at: float
    url: str
    text: str
    name: str = ""
    fingerprint: str = ""
    partition: int | None = None
    end: float = 0.0
    reason: str = ""
    owned: bool | None = None

    @classmethod
    def parse(
        cls,
        text: str,
        *,
        at: float,
        url: str,
        owned: Mapping[str, frozenset[int] | None],
        prints: Mapping[str, str],
    ) -> Self:
        """Read a text of /readyz; `owned` and `prints` are what statuses say, by collection."""
        found = _TEXT.fullmatch(text)
        if found is None:
            return cls(at, url, text)
        name, reason = found["name"], found["reason"]
        fingerprint = found["print"] or prints.get(name, "")
        if found["partition"] is None:
            return cls(at, url, text, name, fingerprint, reason=reason)
        partition, ours = int(found["partition"]), owned.get(name)
        end = parse_time(found["end"]) / 1000
        known = None if ours is None else partition in ours
        return cls(at, url, text, name, fingerprint, partition, end, reason, known)


@dataclass(frozen=True)
class Facts:
    """What the day knows.

    - `reported`: when reports were sent, by collection, fingerprint and partition.
    - `moves`: when workers came and went. `held`: when their file has held windows open.
    - `added`: when a topic had more partitions than the workers' file.
    """

    reported: Mapping[tuple[str, str, int], Sequence[float]]
    moves: Sequence[Span]
    held: Sequence[Span]
    added: Sequence[Span]

    def untrue(self, told: Told) -> str:
        """Return why a reason is not true; empty if it is, or `Brief` has to tell."""
        reason = told.reason
        if told.partition is None:
            return self._untrue_of_collection(told)
        if reason.startswith("another worker owns it"):
            # While partitions move, a wait may be from the second before it got them back.
            return "this worker owns it" if told.owned is True and not self._moving(told) else ""
        if reason.startswith("all partitions have closed them"):
            mine = told.partition != 0 or (told.owned is True and not self._moving(told))
            return "this worker owns partition 0" if mine else ""
        if reason.startswith(("this worker has not loaded it", "it has closed them")):
            lost = told.owned is False and not self._moving(told)
            return "another worker owns it" if lost else ""
        if reason.endswith("idle is off"):
            held = any(one.holds(told.at, told.name) for one in self.held)
            return "" if held else "idle was on"
        if reason.endswith("of its messages are unread"):
            return ""
        return self._untrue_of_reports(told)

    def _untrue_of_collection(self, told: Told) -> str:
        if re.search(r"no window closes, until|partition \d+ was added, and waits", told.text):
            name = told.name or next((n for n in _names(self.added) if n in told.text), "")
            known = any(one.holds(told.at, name) for one in self.added)
            return "" if known else "no partitions were added"
        starting = told.reason == "the worker is starting" or "been read to its end" in told.reason
        known = starting and self._moving(told)
        return "" if known else "nothing of this kind had happened"

    def _untrue_of_reports(self, told: Told) -> str:
        """Return why what is said about a partition's last report is not true."""
        assert told.partition is not None
        key, slack = (told.name, told.fingerprint, told.partition), _TOLERANCE_SECONDS
        last = max((at for at in self.reported.get(key, ()) if at <= told.at - slack), default=0.0)
        recent = max((at for at in self.reported.get(key, ()) if at <= told.at + slack), default=0)
        ago = re.search(r"(\d+) s(?: ago|$)", told.reason)
        if ago is None:
            return "the broker was there"
        seconds = int(ago[1])
        if told.reason.startswith("its last report, counted"):
            if self._moving(told):
                return ""  # What was sent before may be counted only now.
            since = told.at - seconds
            if last > since + slack or recent < since - slack:
                return f"it came {told.at - recent:.1f} s ago"
            dated = since - slack >= told.end + GRACE_SECONDS
            return "it was dated after their end and grace" if dated else ""
        if told.reason.startswith("it was loaded"):
            return (
                f"one came {told.at - last:.1f} s ago" if last > told.at - seconds + slack else ""
            )
        if told.reason.startswith("read to its end, it is idle in"):
            early = last > told.at - IDLE_SECONDS + slack or seconds > IDLE_SECONDS
            return f"a report came {told.at - last:.1f} s ago" if early else ""
        return "nothing of this kind is known"

    def _moving(self, told: Told) -> bool:
        return any(one.holds(told.at, told.name) for one in self.moves)

    def lasting(self, told: Told) -> bool:
        """Return whether a wait may go on for a while."""
        return any(one.holds(told.at, told.name) for one in (*self.moves, *self.added, *self.held))


def _names(spans: Sequence[Span]) -> set[str]:
    return {name for one in spans for name in one.names}


def check_told(told: Sequence[Told], facts: Facts, *, patience_seconds: float = 0.0) -> list[str]:
    """Return the reasons that are not true, each once, and those that did not pass.

    On a busy machine, reasons may last `patience_seconds` longer.
    """
    problems = dict[str, None]()
    since = dict[tuple[str, str, str, int | None, str], tuple[float, float]]()
    for one in told:
        if why := facts.untrue(one):
            kind = re.sub(r"\d+ s\b", "N s", one.reason or one.text)
            problems.setdefault(f"{one.name or one.url} said {kind!r} in vain: {why} ({one.text})")
        if facts.lasting(one) or one.partition is None or " ago" in one.reason:
            continue
        key = (one.url, one.name, one.fingerprint, one.partition, one.reason.split(" ", 2)[0])
        begin, last = since.get(key, (one.at, one.at))
        begin = begin if one.at - last < 2 else one.at
        since[key] = begin, one.at
        if one.at - begin > _BRIEF_SECONDS + patience_seconds:
            problems.setdefault(f"{one.text}: for more than {_BRIEF_SECONDS:.0f} s")
    return list(problems)


def check_delays(
    finals: Finals,
    told: Sequence[Told],
    silent: Sequence[Span],
    *,
    patience_seconds: float = 0.0,
) -> tuple[list[str], int]:
    """Return the finals that came after their windows' idle time without a reason for it.

    On a busy machine, they may come `patience_seconds` later without one.

    Also returns how many came so late, but for those that were due while nobody had to tell why.
    """
    by_name, problems, delayed = defaultdict[str, list[Told]](list), list[str](), 0
    usual_seconds = IDLE_SECONDS + _TOLERANCE_SECONDS + patience_seconds
    for one in told:
        by_name[one.name].append(one)
    for (name, fingerprint, start_ms, end_ms), (came, _) in sorted(finals.items()):
        begin = end_ms / 1000 + GRACE_SECONDS
        halted = any(name in one.names and one.begin < came and one.end > begin for one in silent)
        if came <= begin + usual_seconds or halted:
            continue
        delayed += 1
        heard = (one for one in by_name[name] if begin - 1 <= one.at <= came + 1)
        if not any(one.partition is None or one.end <= end_ms / 1000 for one in heard):
            problems.append(
                f"{name} {fingerprint[:6]}: window {start_ms}: final {came - begin:.1f} s after "
                "its grace, and nobody said why"
            )
    return problems, delayed
