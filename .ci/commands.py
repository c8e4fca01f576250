"""The pages of commands: what each is for, an example, options, errors, and where to go on.

Examples are blocks of other pages, which tests run there; errors are those that
`python -m tests.mistakes` recorded.
"""

import inspect
import re
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path
from typing import Final, NamedTuple

import click

from ldpstream import __version__
from ldpstream.agents.cli.main import COMMANDS, find_command

ROOT: Final = Path(__file__).parents[1]
RECORDED: Final = ROOT / "tests" / "mistakes" / "mistakes.md"
"""What `python -m tests.mistakes` prints; its test compares the two."""
COLUMNS: Final = 100


class Related(NamedTuple):
    """Where a command's example stands, as `PAGE#HEADING`, and pages that say more."""

    example: str
    pages: str


_FIRST: Final = "tutorials/first-collection"
_LIVE: Final = "tutorials/go-live"
RELATED: Final = {
    "init": Related(
        f"{_LIVE}#1. A configuration for people who depend on it",
        "reference/keys how-to/choose-policy how-to/choose-mechanism",
    ),
    "keys": Related(
        f"{_LIVE}#1. A configuration for people who depend on it",
        "reference/keys reference/documents",
    ),
    "check": Related(
        f"{_LIVE}#2. Check before you start",
        "how-to/kafka-auth how-to/change-spec how-to/troubleshoot",
    ),
    "spec": Related(
        f"{_LIVE}#2. Check before you start", "wire vectors approve/verify-it-yourself"
    ),
    "privatize": Related(f"{_FIRST}#5. A report, looked at", "how-to/devices wire"),
    "estimate": Related(
        f"{_FIRST}#5. A report, looked at", "how-to/read-bounds concepts/estimates-and-bounds"
    ),
    "certify": Related(
        f"{_FIRST}#4. A certificate: is it true?",
        "approve/checklist approve/what-is-proved how-to/limit-yearly-loss",
    ),
    "plan": Related(
        f"{_FIRST}#3. A plan: will there be enough people?",
        "how-to/plan how-to/size how-to/choose-mechanism",
    ),
    "worker": Related(
        f"{_FIRST}#6. Run it", "how-to/deploy how-to/scale how-to/own-faust-app how-to/monitor"
    ),
    "gateway": Related(
        "tutorials/browser-survey#2. Broker, worker, gateway, page", "how-to/gateway"
    ),
    "send": Related(
        f"{_LIVE}#4. A device with a ledger", "how-to/devices how-to/limit-yearly-loss"
    ),
    "ledger": Related(
        "how-to/limit-yearly-loss#Make devices keep to it", "how-to/devices reference/python/ledger"
    ),
    "close": Related(f"{_FIRST}#9. Read what is final", "concepts/windows-and-time"),
    "backup": Related(
        f"{_LIVE}#7. A back-up, and what it is for", "how-to/back-up-and-restore how-to/upgrade"
    ),
    "reset": Related(
        "how-to/back-up-and-restore#Restore", "how-to/back-up-and-restore how-to/erase-data"
    ),
    "query": Related(
        f"{_FIRST}#8. Read, while the hour is open",
        "concepts/estimates-and-bounds how-to/read-bounds tutorials/analyst-notebook",
    ),
    "finals": Related(
        "how-to/back-up-and-restore#Back up", "how-to/consume-estimates reference/http"
    ),
    "discover": Related("how-to/discover-words#A run", "how-to/discover-words"),
    "status": Related(
        f"{_FIRST}#9. Read what is final", "how-to/troubleshoot how-to/monitor reference/http"
    ),
    "simulate": Related(
        f"{_LIVE}#6. A drill: kill a worker while reports come in", "how-to/size how-to/plan"
    ),
    "devbroker": Related(f"{_FIRST}#6. Run it", "tutorials/go-live reference/limits"),
    "demo": Related("README#Try it", "tutorials/first-collection"),
}
GROUPS: Final = {
    "Design a collection": "init keys certify plan spec",
    "Try it": "demo devbroker privatize estimate simulate",
    "Run it": "check worker gateway close backup reset",
    "Send": "send ledger",
    "Read": "query finals status discover",
}
_BLOCK: Final = re.compile(
    r"^```sh\n(?P<code>(?:.*\n)*?)```\n(?:```text.*\n(?P<output>(?:.*\n)*?)```$)?", re.MULTILINE
)
_EXITS: Final = (
    "Exit code 0 is success, 1 a check that failed or something that did not answer, 2 wrong use "
    "or input. [Every mistake and its message](../mistakes.md) has those of a configuration, too."
)


def source(place: str) -> Path:
    """Return the file of a page that is named by its place below `docs`."""
    return ROOT / "README.md" if place == "README" else ROOT / "docs" / f"{place}.md"


def example(name: str) -> tuple[str, str]:
    """Return a command's example, and what it prints, if its page shows that."""
    place, _, heading = RELATED[name].example.partition("#")
    text = source(place).read_text("utf-8")
    section = re.split(rf"^#+ {re.escape(heading)}$", text, flags=re.MULTILINE)[1]
    called = re.compile(rf"\b(?:ldpstream|make) {name}\b")
    found = next(one for one in _BLOCK.finditer(section) if called.search(one["code"]))
    return found["code"], found["output"] or ""


def errors(name: str) -> list[str]:
    """Return the recorded mistakes of a command, as rows of a table."""
    rows = re.findall(r"^\| (.+`.+`) \| (.+) \|$", RECORDED.read_text("utf-8"), re.MULTILINE)
    own = re.compile(rf"[^;]+`{name}(?: [^`]*)?`")
    return [
        f"| {'; '.join(one.strip() for one in made)} | {message} |"
        for mistake, message in rows
        if (made := own.findall(mistake))
    ]


def _title(place: str) -> str:
    if not source(place).exists():
        return place.rpartition("/")[2]  # One that the site alone has.
    return source(place).read_text("utf-8").partition("\n")[0].removeprefix("# ")


def _link(place: str, heading: str = "") -> str:
    anchor = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower())
    to = "../../../README.md" if place == "README" else f"../../{place}.md"
    return f"[{heading or _title(place)}]({to}{'#' * bool(anchor)}{anchor})"


def command(name: str, markdown: Callable[[str], str]) -> str:
    """Return the page of a command; `markdown` sets its docstring."""
    found = find_command(name)
    context = click.Context(found, info_name=f"ldpstream {name}", terminal_width=COLUMNS)
    context.help_option_names = ["-h", "--help"]
    usage = found.get_usage(context).removeprefix("Usage: ")
    records = filter(None, (one.get_help_record(context) for one in found.get_params(context)))
    code, output = example(name)
    place, _, heading = RELATED[name].example.partition("#")
    lines = [f"# ldpstream {name}", "", markdown(inspect.cleandoc(found.help or "")), ""]
    lines += ["## Example", "", f"From {_link(place)}, {_link(place, heading)}:", ""]
    lines += ["```sh", code.rstrip(), "```", ""]
    lines += ["It prints:", "", "```text", output.rstrip(), "```", ""] if output else []
    lines += ["## Options", "", "```text", usage, "```", "", "| option | |", "|---|---|"]
    lines += [
        f"| {_code(option)} | {markdown(' '.join(said.split()))} |" for option, said in records
    ]
    lines += ["", "## Errors", "", _EXITS, ""]
    if rows := errors(name):
        lines += ["| mistake | message |", "|---|---|", *rows, ""]
    lines += ["## See also", "", *(f"- {_link(one)}" for one in RELATED[name].pages.split()), ""]
    return "\n".join(lines)


def _code(text: str) -> str:
    """Return code for the cell of a table, whose bars are none of the table's."""
    return f"<code>{escape(text).replace('|', '&#124;')}</code>"


def overview() -> str:
    """Return the page that leads to those of all commands, by what they are for."""
    return "\n".join(_overview())


def _overview() -> Iterator[str]:
    yield f"# Every command of ldpstream {__version__}\n"
    yield "Each with its page. `ldpstream COMMAND --help` prints its options.\n"
    for title, names in GROUPS.items():
        yield from (f"## {title}\n", "| command | |", "|---|---|")
        for name in names.split():
            yield f'| <a id="{name}"></a>[`{name}`](commands/{name}.md) | {COMMANDS[name]} |'
        yield ""
