"""The options that say how value lines are read: their columns, and what becomes of bad ones."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.terminal.errors import Refused
from ldpstream.agents.terminal.times import NearNow, near_now
from ldpstream.mechanisms.domains.fitting import has_ends

Command = TypeVar("Command", bound=Callable[..., Any])


def reading_options(command: Command) -> Command:
    """Add `--columns`, `--clamp` and `--skip-bad`; collect them as keywords for `Reading.of`."""
    for option in (
        click.option(
            "--skip-bad", is_flag=True, help="Leave bad lines out, and say how many there were."
        ),
        click.option(
            "--clamp",
            is_flag=True,
            help="Move numbers outside the domain to its nearest end, and say how many there were.",
        ),
        click.option(
            "--columns",
            metavar="NAME[,NAME]",
            help="The first line names columns, and these hold the value, in its order; "
            "with --times, the first of them the time.",
        ),
    ):
        command = option(command)
    return command


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
        cls,
        collection: CollectionConfig,
        *,
        times: bool,
        replay: bool,
        columns: str | None,
        clamp: bool,
        skip_bad: bool,
    ) -> "Reading":
        """Return what the options say.

        Raises:
            Refused: naming the option that is impossible for this collection.
        """
        names = () if columns is None else tuple(name.strip() for name in columns.split(","))
        if columns is not None and (not all(names) or len(set(names)) < len(names)):
            raise Refused("--columns: expected names with commas between, each once")
        if clamp and not has_ends(collection.spec.domain):
            raise Refused(
                f"--clamp: expected a collection of numbers alone, which {collection.name} is not"
            )
        near = near_now(collection.window, replay=replay)
        return cls(times=times, near=near, columns=names, clamp=clamp, skip_bad=skip_bad)
