"""Asking all workers all day: no answer may be an error, and each wait says why."""

import json
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode

_EVERY_SECONDS: Final = 0.5
_TIMEOUT_SECONDS: Final = 20.0
_UNAVAILABLE: Final = 503


@dataclass
class Watch:
    """Asks everything that workers answer, from a thread of its own, and keeps what is wrong.

    - `answers`: how many answers had which status.
    - `errors`: statuses of 500 and more but 503, and 503 without a reason; each once.
    - `told`: `(seconds, reason)` of all reasons that /readyz and statuses gave, on the clock of
      `time.time`.
    """

    names: list[str]
    urls: Sequence[str] = ()
    answers: Counter[int] = field(default_factory=Counter)
    errors: dict[str, None] = field(default_factory=dict)
    told: list[tuple[float, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def reasons(self, since: float) -> list[str]:
        """Return the different reasons given since a time."""
        return list(dict.fromkeys(reason for at, reason in self.told if at >= since))

    def _run(self) -> None:
        while not self._over.wait(_EVERY_SECONDS):
            for url in self.urls:
                self._ask_all(url)

    def _ask_all(self, url: str) -> None:
        self._ask(url, "/metrics")
        ready = self._ask(url, "/readyz") or {}
        for reason in (*ready.get("reasons", ()), *ready.get("waits", ())):
            self.told.append((time.time(), reason))
        self._ask(url, "/api/collections")
        for name in list(self.names):
            path = f"/api/collections/{name}"
            for problem in (self._ask(url, f"{path}/status") or {}).get("problems", ()):
                self.told.append((time.time(), problem))
            for one in (self._ask(url, f"{path}/windows") or {}).get("windows", ())[-2:]:
                span = urlencode({"start": one["window"]["start"], "end": one["window"]["end"]})
                self._ask(url, f"{path}/estimate?{span}")

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
