"""Asking all workers all day: no answer may be an error, and each wait says why."""

import json
import re
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode

from tests.crash.day.reasons import Told
from tests.crash.day.setting import COLLECTIONS

_EVERY_SECONDS: Final = 0.5
_TIMEOUT_SECONDS: Final = 20.0
_UNAVAILABLE: Final = 503
_MINIMUM: Final = {
    name: int(re.findall(r"minimum = (\d+)", table)[0]) for name, table in COLLECTIONS.items()
}


@dataclass
class Watch:
    """Asks everything that workers answer, from a thread of its own, and keeps what is wrong.

    - `answers`: how many answers had which status.
    - `errors`: statuses of 500 and more but 503, and 503 without a reason; each once.
    - `told`: all that /readyz and statuses gave as reasons.
    - `withheld`: how many documents lacked reports, by collection and what they said.
    """

    names: list[str]
    urls: Sequence[str] = ()
    answers: Counter[int] = field(default_factory=Counter)
    errors: dict[str, None] = field(default_factory=dict)
    told: list[Told] = field(default_factory=list)
    withheld: Counter[tuple[str, str]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._over = threading.Event()
        self._owned: dict[tuple[str, str], frozenset[int]] = {}
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def reasons(self, since: float) -> list[str]:
        """Return the different reasons given since a time."""
        return list(dict.fromkeys(one.text for one in self.told if one.at >= since))

    def _run(self) -> None:
        while not self._over.wait(_EVERY_SECONDS):
            for url in self.urls:
                self._ask_all(url)

    def _ask_all(self, url: str) -> None:
        self._ask(url, "/metrics")
        ready = self._ask(url, "/readyz") or {}
        at, said = time.time(), [*ready.get("reasons", ()), *ready.get("waits", ())]
        self._ask(url, "/api/collections")
        owned, prints = dict[str, frozenset[int] | None](), dict[str, str]()
        for name in list(self.names):
            path = f"/api/collections/{name}"
            if status := self._ask(url, f"{path}/status"):
                said += [f"{name}: {one}" for one in status.get("problems", ())]
                prints[name] = status["fingerprint"]
                now = frozenset(p["partition"] for p in status["partitions"] if p["owned"])
                # Only what was the same before and after /readyz was asked.
                owned[name] = now if self._owned.get((url, name)) == now else None
                self._owned[url, name] = now
            for one in (self._ask(url, f"{path}/windows") or {}).get("windows", ())[-2:]:
                span = urlencode({"start": one["window"]["start"], "end": one["window"]["end"]})
                self._look(name, self._ask(url, f"{path}/estimate?{span}") or {})
        self.told += [Told.parse(one, at=at, url=url, owned=owned, prints=prints) for one in said]

    def _look(self, name: str, document: dict[str, Any]) -> None:
        """Keep why a document is withheld, or what it lacks."""
        if (waiting := document.get("waiting")) is not None:
            self.withheld[name, f"{waiting['because']}, {waiting['until']}"] += 1
        elif document.get("withheld"):
            few = document["n"] < _MINIMUM[name]
            self.withheld[name, "few reports" if few else "no reason"] += 1

    def _ask(self, url: str, path: str) -> dict[str, Any] | None:
        """Return a JSON answer; None for any other, or if the worker is away."""
        try:
            with urllib.request.urlopen(url + path, timeout=_TIMEOUT_SECONDS) as answer:
                status, body = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                status, body = error.code, error.read()
        except OSError:
            return None
        self.answers[status] += 1
        try:
            found = json.loads(body)
        except ValueError:
            found = None
        told = isinstance(found, dict) and bool(found.get("reasons") or found.get("error"))
        if status >= 500 and not (status == _UNAVAILABLE and told):
            self.errors[f"{status} at {path}: {body[:200].decode(errors='replace')}"] = None
        return found if isinstance(found, dict) else None
