"""The options of a query, the same for `estimate` (files) and `query` (a running worker)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar

import click

from ldpstream.agents.cli.terminal.errors import Refused
from ldpstream.agents.config.query.options import SETTINGS, Setting

Command = TypeVar("Command", bound=Callable[..., Any])
Form = Literal["table", "json", "csv"]
"""How documents are printed."""


def form_options(command: Command) -> Command:
    """Add `--json` and `--csv`, passed on as `form`: a table without any of them."""
    helps = {"json": "Print JSON.", "csv": "Print CSV, one row per entry."}

    def choose(ctx: click.Context, parameter: click.Parameter, chosen: bool) -> None:
        form, current = str(parameter.name), ctx.params.setdefault("form", "table")
        if chosen and current != "table":
            raise Refused("--json, --csv: expected at most one of them")
        if chosen:
            ctx.params["form"] = form

    for form, text in reversed(helps.items()):
        option = click.option(
            f"--{form}", is_flag=True, expose_value=False, callback=choose, help=text
        )
        command = option(command)
    return command


def query_options(command: Command) -> Command:
    """Add the options of a query, collected as keywords; `query_parameters` reads them."""
    for setting in reversed(SETTINGS):
        command = _option(setting)(command)
    return command


def _option(setting: Setting) -> Callable[[Command], Command]:
    name, schema = f"--{setting.word}", setting.schema
    if schema["type"] == "boolean":
        return click.option(name, is_flag=True, default=None, help=f"{setting.help}.")
    names = schema.get("enum")
    return click.option(
        name,
        type=click.Choice(names) if isinstance(names, list) else None,
        metavar=setting.form,
        multiple=setting.repeated,
        help=f"{setting.help}{'; repeatable' if setting.repeated else ''}.",
    )


def query_parameters(written: Mapping[str, Any]) -> dict[str, Sequence[str]]:
    """Return the texts of the options that were given, by the name they have in a URL."""
    return {
        word: value if isinstance(value, tuple) else ("true" if value is True else value,)
        for word, value in written.items()
        if value is not None and value != ()
    }
