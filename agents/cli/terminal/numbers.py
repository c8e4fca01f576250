"""The types of options that are numbers, in the grammar of all other numbers."""

from typing import Any

import click

from ldpstream.mechanisms.base.numbers import read_number, read_whole


class Whole(click.IntRange):
    """A whole number between two limits; not Python's other spellings of one, such as `1_0`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number, or refuse the text."""
        if isinstance(value, str):
            try:
                value = read_whole(value)
            except ValueError:
                self.fail(f"{value!r} is not a valid integer.", param, ctx)
        return super().convert(value, param, ctx)


class Real(click.FloatRange):
    """A finite number between two limits; `nan`, which no limit excludes, is no number."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number, or refuse the text."""
        if isinstance(value, str):
            try:
                value = read_number(value)
            except ValueError:
                self.fail(f"{value!r} is not a valid float.", param, ctx)
        return super().convert(value, param, ctx)
