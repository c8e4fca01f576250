"""The options that say how value lines are read: their columns, and what becomes of bad ones."""

from dataclasses import dataclass

import click

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.terminal.errors import Refused
from ldpstream.agents.terminal.gathered import gathered
from ldpstream.agents.terminal.times import NearNow, near_now
from ldpstream.mechanisms.domains.attributes import Attributes
from ldpstream.mechanisms.domains.fitting import has_ends


@dataclass(frozen=True, kw_only=True)
class AskedReading:
    """What was written on the command line about value lines."""

    times: bool
    replay: bool
    columns: str | None
    clamp: bool
    skip_bad: bool


reading_options = gathered(
    "asked",
    AskedReading,
    click.option("--times", is_flag=True, help="Lines begin with a time, that of the report."),
    click.option(
        "--replay", is_flag=True, help="Take times of any year; otherwise they must be near now."
    ),
    click.option(
        "--columns",
        metavar="NAME[,NAME]",
        help="The first line, or the table, names columns, and these hold the value, in its "
        "order; with --times, the first of them the time.",
    ),
    click.option(
        "--clamp",
        is_flag=True,
        help="Move numbers outside the domain to its nearest end, and say how many there were.",
    ),
    click.option(
        "--skip-bad", is_flag=True, help="Leave bad lines out, and say how many there were."
    ),
)


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How value lines are read.

    `times`: the first column is a time, of which `near` says which are believed. `columns` are
    named by the first line; without any, lines are values from the first on.
    """

    times: bool = False
    near: NearNow | None = None
    columns: tuple[str, ...] = ()
    clamp: bool = False
    skip_bad: bool = False

    @classmethod
    def of(
        cls, collection: CollectionConfig, asked: AskedReading, *, reports: bool = False
    ) -> "Reading":
        """Return what the options say of value lines, or of the lines of `reports`.

        Raises:
            Refused: naming the option that is impossible for this collection.
        """
        if asked.replay and not (asked.times or reports):
            raise Refused(
                "--replay: expected --times with it: without times, reports are dated now"
            )
        columns, domain = asked.columns, collection.spec.domain
        if columns is not None and isinstance(domain, Attributes):
            raise Refused(
                f"--columns: expected none, because {collection.name} is of records: the first "
                f"line names their columns, {', '.join(domain.columns)}"
            )
        if reports and (columns is not None or asked.clamp or asked.skip_bad):
            what = "no --columns, --clamp or --skip-bad: they are for values"
            raise Refused(f"--reports: expected {what}")
        names = () if columns is None else tuple(name.strip() for name in columns.split(","))
        if columns is not None and (not all(names) or len(set(names)) < len(names)):
            raise Refused("--columns: expected names with commas between, each once")
        if isinstance(domain, Attributes):
            names = (*(["time"] if asked.times else []), *domain.columns)
        if asked.clamp and not has_ends(domain):
            raise Refused(
                f"--clamp: expected a collection of numbers alone, which {collection.name} is not"
            )
        return cls(
            times=asked.times,
            near=near_now(collection.window, replay=asked.replay),
            columns=names,
            clamp=asked.clamp,
            skip_bad=asked.skip_bad,
        )
