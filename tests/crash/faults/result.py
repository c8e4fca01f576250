"""The settings and the result of a run with faults."""

from dataclasses import dataclass, field

from tests.crash.faults.check import Checked


@dataclass(frozen=True, kw_only=True)
class Settings:
    """A run; `workers` stay, `visitors` come and go.

    With `idle` event time is the time on the wall, and partitions of all collections fall idle.
    """

    broker: str
    faults: int
    reports: int
    seed: int
    seconds: float
    workers: int = 3
    visitors: int = 2
    idle: bool = False

    @property
    def places(self) -> int:
        """How many processes there are room for, devices aside."""
        return self.workers + self.visitors


@dataclass(frozen=True)
class Fault:
    """A fault that happened; times are in seconds, `begun` since the run began."""

    kind: str
    begun: float
    lasted: float
    decided: float | None
    """From its end until everything acknowledged by then was decided; None: never."""
    ready: float
    """From its end until all workers were ready after that, whatever else happened meanwhile."""


@dataclass
class Result:
    """The result of a run."""

    settings: Settings
    faults: list[Fault] = field(default_factory=list)
    checked: dict[str, Checked] = field(default_factory=dict)
    """By collection."""
    wrong: list[str] = field(default_factory=list)
    """Everything that went wrong besides the counts, one sentence each."""
    figures: dict[str, float] = field(default_factory=dict)

    @property
    def exact(self) -> bool:
        """Whether everything was compared, and nothing differs."""
        return bool(self.checked) and not self.wrong and not self.differences

    @property
    def differences(self) -> list[str]:
        """Every difference, with its collection."""
        return [f"{name}: {what}" for name, c in self.checked.items() for what in c.wrong]
