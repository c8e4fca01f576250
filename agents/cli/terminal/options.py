"""The options of a query, the same for `estimate` (files) and `query` (a running worker)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar

import click

from ldpstream.agents.config.query.options import SETTINGS, Setting

Command = TypeVar("Command", bound=Callable[..., Any])
Form = Literal["table", "json", "csv"]
"""How documents are printed."""


def form_options(command: Command) -> Command:
    """Add `--json` and `--csv`, passed on as `form`: the last one given, or a table."""
    forms = {"json": "Print JSON.", "csv": "Print CSV, one row per entry."}
    for form, text in reversed(forms.items()):
        option = click.option(f"--{form}", "form", flag_value=form, default="table", help=text)
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
