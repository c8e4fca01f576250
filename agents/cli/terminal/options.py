"""The options that several commands share; what reads their values is imported once it is needed.

A command is declared with nothing else, so that `--help` does not wait for the configuration.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, TypeVar

import click

from ldpstream.agents.cli.terminal.errors import Refused
from ldpstream.agents.cli.terminal.parameters import Whole, group_options

Command = TypeVar("Command", bound=Callable[..., Any])
Form = Literal["table", "json", "csv"]
"""How documents are printed."""
LARGEST_BATCH: Final = 50_000  # even if all times differ, such a frame is below 1 MB
_SHARD_VARIABLE: Final = "LDPSTREAM_SHARD"
_FEW_MS: Final = 100_000_000_000  # since 1970: March 1973


def config_option(command: Command) -> Command:
    """Add `-c FILE`, passed on as `config_file`."""
    return click.option(
        "-c",
        "--config",
        "config_file",
        default="ldpstream.toml",
        show_default=True,
        metavar="FILE",
        help="The configuration.",
    )(command)


def number_option(flag: str, most: int, *, default: int, text: str) -> Callable[[Command], Command]:
    """Add an option for a whole number from 1 to `most`; `text` is its help."""
    return click.option(
        flag,
        type=Whole(1, most),
        default=default,
        show_default=True,
        metavar="N",
        help=text,
    )


class Parsed(click.ParamType):
    """Parameters that `parse` reads; where it raises a ValueError, the user sees its text."""

    def __init__(self, name: str, parse: Callable[[str], object]) -> None:
        self.name = name
        self._parse = parse

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> object:
        try:
            return self._parse(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _parse_shard(text: str) -> object:
    from ldpstream.agents.config.worker import Shard

    return Shard.parse(text)


def shard_option(command: Command) -> Command:
    """Add `--shard`, passed on as `shard`."""
    return click.option(
        "--shard",
        type=Parsed("shard", _parse_shard),
        default="1/1",
        envvar=_SHARD_VARIABLE,
        show_envvar=True,
        metavar="I/N",
        help="Run only the collections whose names fall to shard I of N.",
    )(command)


def verbose_option(command: Command) -> Command:
    """Add `--verbose`, for long-running processes."""
    return click.option("--verbose", is_flag=True, help="Also log what the Kafka clients say.")(
        command
    )


def _parse_time(text: str) -> int:
    from ldpstream.agents.broker.record_time import now_ms
    from ldpstream.mechanisms.base.times import format_time, parse_time

    try:
        time_ms = parse_time(text)
    except ValueError as error:
        raise ValueError(f"expected {error}") from None
    if ":" not in text and abs(time_ms) < _FEW_MS:
        # More likely a year or a number of seconds than a time in the 1970s.
        raise ValueError(
            f"expected an RFC 3339 time with Z or an offset, such as {format_time(now_ms())}, "
            f"or epoch milliseconds, got {text}, which is {format_time(time_ms)}"
        )
    return time_ms


TIME: Final = Parsed("time", _parse_time)
"""A time on the command line: RFC 3339, or epoch milliseconds from March 1973 on."""


def form_options(command: Command) -> Command:
    """Add `--json` and `--csv`, passed on as `form`: the last one given, or a table."""
    forms = {"json": "Print JSON.", "csv": "Print CSV, one row per entry."}
    for form, text in reversed(forms.items()):
        option = click.option(f"--{form}", "form", flag_value=form, default="table", help=text)
        command = option(command)
    return command


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """The options about value lines, as given on the command line."""

    times: bool
    replay: bool
    columns: str | None
    clamp: bool
    skip_bad: bool


reading_options = group_options(
    "options",
    ReadingOptions,
    click.option("--times", is_flag=True, help="Each line begins with the report's time."),
    click.option(
        "--replay", is_flag=True, help="Accept times of any year; otherwise they must be near now."
    ),
    click.option(
        "--columns",
        metavar="NAME[,NAME]",
        help="Columns that hold the value, in order, by their names in the first line or the "
        "table; with --times, the first of them holds the time.",
    ),
    click.option(
        "--clamp",
        is_flag=True,
        help="Move numbers outside the domain to its nearest end, and say how many.",
    ),
    click.option("--skip-bad", is_flag=True, help="Leave bad lines out, and say how many."),
)


@dataclass(frozen=True, kw_only=True)
class Spending:
    """The ledger options as given on the command line; None where absent."""

    ledger: str | None
    budget: str | None
    horizon: str | None

    def refuse(self) -> None:
        """Refuse ledger options without a ledger: nothing would enforce them."""
        for field in fields(self):
            if getattr(self, field.name):
                raise Refused(f"--{field.name}: expected --ledger with it")


ledger_options = group_options(
    "spending",
    Spending,
    click.option(
        "--ledger",
        type=click.Path(dir_okay=False),
        metavar="FILE",
        help="All lines are one person's: one report per window, kept here, within --budget.",
    ),
    click.option("--budget", metavar="EPSILON", help="What all reports may lose together."),
    click.option(
        "--horizon", metavar="DURATION", help='Period of the budget, such as "1d"; else for ever.'
    ),
)
