"""What may be asked of a collection, as text: the names, forms and helps of each setting.

Command lines and URLs are declared from these alone, and `EstimateRequest` has a field for each.
They load neither pydantic nor numpy, so that the help of a command does not wait for them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, get_args

from ldpstream.estimators.bounds.options import Estimand, Method
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.base.numbers import read_number, read_whole

Projection = Literal["none", "ordered", "simplex", "blocks"]
"""`ordered`: shares that agree with the order of values, from a tree down, or of the monotone
cumulative curve of one dimension. `simplex`: the nearest distribution. `blocks`: the same, keeping
each disclosed total."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One thing that may be asked; `name` is its key in a body and its field in the options.

    `schema` is the JSON Schema of its text, `form` the text's shape in help texts. `read` returns
    the value as in JSON, and raises ValueError for a text that is not as `expected`. `repeated`: it
    may be given several times, with one text for each entry of the body's list.
    """

    schema: Mapping[str, Json]
    read: Callable[[str], Any] = str
    expected: str = "a text"
    form: str | None = None
    repeated: bool = False
    name: str = ""
    help: str = ""

    @property
    def word(self) -> str:
        """The parameter of a URL, and with two dashes the option of a command."""
        return self.name.removesuffix("s") if self.repeated else self.name

    @property
    def description(self) -> str:
        """The parameter's help, after its form if the schema does not say it."""
        spelled = self.form is not None and self.schema == {"type": "string"}
        return f"{self.form}: {self.help}" if spelled else self.help


def choice(names: Any) -> Setting:
    """Return a setting with the names of a `Literal`."""
    names_known = get_args(names)
    return Setting(
        schema={"type": "string", "enum": list(names_known)},
        read=lambda text: names_known[names_known.index(text)],
        expected=f"one of {', '.join(names_known)}",
    )


def spelled(form: str, *, repeated: bool = False) -> Setting:
    """Return a setting in texts of this form, which are parsed once the domain is known."""
    return Setting(schema={"type": "string"}, form=form, repeated=repeated)


def _read_unit(text: str) -> float:
    number = read_number(text)
    if not 0.0 < number < 1.0:
        raise ValueError(text)
    return number


def _read_top(text: str) -> int | str:
    if text == "all":
        return text
    if not text.isdigit():
        raise ValueError(text)
    return read_whole(text)


FLAG: Final = Setting(
    schema={"type": "boolean"},
    read=lambda text: bool(("false", "true").index(text)),
    expected="true or false",
)
UNIT: Final = Setting(
    schema={"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    read=_read_unit,
    expected="a number above 0 and below 1",
    form="P",
)
TOP: Final = Setting(
    schema={"type": "string", "pattern": "^(all|[0-9]+)$"},
    read=_read_top,
    expected='a whole number or "all"',
    form="N|all",
)

_SETTINGS: Final[Mapping[str, tuple[Setting, str]]] = {
    "attribute": (spelled("NAME"), "Of records: the attribute to estimate; by default each"),
    "top": (TOP, "The N largest shares, or all values in the domain's order"),
    "ranges": (
        spelled("LO..HI[,LO..HI]|NAME", repeated=True),
        (
            "The share between two values, both included, or on an interval between two edges of "
            "bins; one pair per dimension; or the share of a named block or published set"
        ),
    ),
    "quantiles": (
        replace(UNIT, repeated=True),
        "The smallest value that at least this share does not exceed; above 0, below 1",
    ),
    "linear": (
        spelled("[NAME:]W,W,...|LABEL=W,...", repeated=True),
        (
            "The mean of a weight given for each value, in the domain's order, or by label, where "
            "all others weigh 0"
        ),
    ),
    "areas": (
        FLAG,
        "Shares of all blocks, and of areas in them that differ from their surroundings",
    ),
    "estimand": (
        choice(Estimand),
        (
            "Shares among those who report, in the population they are drawn from, or among all "
            "devices whose ledgers spread their budget"
        ),
    ),
    "method": (
        choice(Method),
        "How bounds are made; anytime: they hold at every moment of a window at once",
    ),
    "simultaneous": (FLAG, "Wider bounds, which all hold at once"),
    "confidence": (UNIT, "Probability with which bounds hold, above 0 and below 1"),
    "project": (
        choice(Projection),
        (
            "Post-process shares into a distribution, slightly biased; ordered: for ordered "
            "values, the default with tree; none: unbiased; blocks: keep each disclosed total"
        ),
    ),
}
SETTINGS: Final = tuple(
    replace(setting, name=name, help=text) for name, (setting, text) in _SETTINGS.items()
)
"""All that may be asked, in the order of help texts."""
WORDS: Final = {setting.word: setting for setting in SETTINGS}
"""The same, by parameter of URLs and option of commands."""
HELPS: Final = {setting.name: setting.help for setting in SETTINGS}
"""What each asks for, by its key in a body."""
