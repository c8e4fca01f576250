"""The documentation: a test runs every block of code or says why not, and every link works."""

import importlib.util
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click
import pytest
import yaml

from ldpstream.agents.cli.main import COMMANDS, find_command, main
from ldpstream.agents.config import ConfigError, read_config
from ldpstream.agents.document.model import EstimateDocument
from tests.house.scripts import script
from tests.pages import ROOT, Block, agrees, blocks, pages
from tests.property.configs import MINIMAL

PAGES: Final = "tests/broker/pages/test_pages.py"
"""Runs its pages from top to bottom."""
FIRST: Final = "tests/broker/pages/test_first_collection.py"
DEVICES: Final = "tests/broker/pages/test_devices_page.py"

RUN_BY: Final = {
    "docs/tutorials/first-collection.md": FIRST,
    "docs/tutorials/go-live.md": "tests/broker/pages/test_go_live.py",
    "docs/tutorials/browser-survey.md": "tests/browser/test_survey.py",
    "docs/how-to/own-faust-app.md": FIRST,
    "docs/how-to/limit-yearly-loss.md": PAGES,
    "docs/how-to/size.md": PAGES,
    "docs/how-to/devices.md#Python": DEVICES,
    "docs/how-to/devices.md#The ledger": DEVICES,
    "docs/how-to/devices.md#A file of values": DEVICES,
    "docs/reference/http.md#Estimates": FIRST,
    "docs/reference/http.md#From a terminal": FIRST,
    "docs/reference/http.md#From Python": "tests/stream/client/test_client.py",
    "docs/how-to/kafka-auth.md#Permissions": "tests/broker/pages/test_listeners.py",
    "docs/how-to/back-up-and-restore.md": "tests/broker/pages/test_runbooks.py",
    "docs/how-to/erase-data.md": "tests/broker/pages/test_runbooks.py",
    "docs/how-to/consume-estimates.md": DEVICES,
    "docs/how-to/consume-estimates.md#In Prometheus": "tests/ops/test_prometheus.py",
    "docs/how-to/monitor.md#Set it up": "tests/ops/test_queries.py",
    "docs/how-to/plan.md#Plan a collection": "tests/stream/commands/test_plan.py",
    "docs/how-to/python.md": "tests/stream/client/test_python_page.py",
    "docs/how-to/four-jobs.md": "tests/stream/client/test_python_page.py",
    "docs/how-to/write-a-mechanism.md": "tests/house/test_guide_mechanism.py",
    "docs/how-to/choose-policy.md": PAGES,
    "docs/how-to/read-bounds.md": PAGES,
    "docs/reference/channel-files.md": PAGES,
    "docs/concepts/privacy.md": PAGES,
    "docs/approve/checklist.md": PAGES,
    "docs/approve/what-is-proved.md": PAGES,
    "docs/approve/verify-it-yourself.md": PAGES,
    "docs/approve/impact-assessment.md": PAGES,
    "clients/javascript/README.md": "tests/javascript/test_node.py",
    "clients/python/README.md": "tests/house/test_packaging.py",
    "docs/how-to/change-spec.md#Another spec under the same topic": FIRST,
    "docs/how-to/change-spec.md#Another size of windows": "tests/broker/windows/test_windows.py",
    "docs/how-to/upgrade.md#The state's format": "tests/broker/test_formats.py",
    "docs/how-to/change-spec.md#More partitions": "tests/stream/pipeline/test_engine.py",
    "docs/reference/http.md#Live updates": "tests/stream/http/test_http_events.py",
}
"""The test that runs or compares the blocks below a heading, or those of a whole page."""

NOT_RUN: Final = {
    "README.md#Try it": "make installs; tests/broker/pages/test_demo.py runs the demo",
    "docs/how-to/monitor.md#How long should grace be?": "a query; tests/ops checks its metric",
    "docs/internals/benchmarks.md#Benchmarks and long runs": "minutes to hours",
    "docs/internals/benchmarks.md#Long runs": "hours",
    "docs/how-to/troubleshoot.md#When windows wait": "a line; tests/broker/windows/test_windows.py",
    "docs/how-to/deploy.md#On a machine": "root and packages; tests/ops compares it with the image",
    "docs/how-to/deploy.md#In Docker, on one machine": "Docker; tests/ops runs the same natively",
    "docs/internals/faults.md#Faults": "hours",
    "docs/performance.md#Performance": "minutes; tests/broker/test_engine_benchmark.py",
    "docs/internals/architecture.md#Architecture": "a picture",
    "docs/wire.md#Uploads over HTTP": "a form; tests/gateway uploads with these headers",
    "docs/how-to/scale.md#Restarts that move nothing": "a table; tests/broker/test_instances.py",
    "docs/how-to/scale.md#Shards": "for ever; tests/broker/test_instances.py runs the same",
    "docs/how-to/deploy.md#In Kubernetes": "Kubernetes; tests/ops renders the chart",
    "docs/how-to/discover-words.md#A run": "its windows; tests/broker/pages/test_discover.py",
    "docs/how-to/gateway.md#The HTTP gateway": "for ever; tests/gateway runs gateways",
}
"""Why no test runs these; the options of their commands are checked all the same."""

EVERY: Final = [block for page in pages() for block in blocks(page)]


def test_there_are_pages_with_blocks():
    assert len(EVERY) > 40
    languages = {block.language for block in EVERY}
    assert languages >= {"sh", "python", "toml", "js", "diff", "text"}


def test_every_block_is_run_or_says_why_not():
    # `test_doctests` runs the sessions of every page, and `test_toml_is_a_configuration` its TOML.
    left = {
        block.place
        for block in EVERY
        if block.language not in ("pycon", "toml")
        and not {block.place, block.page} & (RUN_BY.keys() | NOT_RUN.keys())
    }
    assert not left, "say in RUN_BY or NOT_RUN which test runs these, or why none does"


def test_every_entry_has_its_block():
    listed = RUN_BY.keys() | NOT_RUN.keys()
    here = {one for one in listed if (ROOT / one.partition("#")[0]).exists()}
    assert here <= {block.place for block in EVERY} | {block.page for block in EVERY}


@pytest.mark.parametrize(("place", "test"), RUN_BY.items())
def test_the_test_of_a_page_names_it(place: str, test: str):
    text = (ROOT / test).read_text("utf-8")
    name = place.partition("#")[0].rpartition("/")[2]
    assert name in text


READ: Final = [
    block for block in EVERY if block.language == "toml" and "channel =" not in block.code
]
"""All but what names a channel file: tests/broker/pages/test_pages.py makes the file first."""


@pytest.mark.parametrize("block", READ, ids=lambda block: block.place)
def test_toml_is_a_configuration(block: Block, tmp_path: Path):
    """Its keys exist and its values fit, in a collection that is completed where needed."""
    tables = tomllib.loads(block.code)
    collections = tables.setdefault("collection", {})
    for name, table in list(collections.items()) or [("c", {})]:
        table.pop("accept", None)
        collections[name] = table if "mechanism" in table else MINIMAL | table
    try:
        read_config(tables, base=tmp_path, environment={"LDPSTREAM_READ_TOKEN": "0" * 64})
    except ConfigError as error:
        pytest.fail(str(error))


@pytest.mark.parametrize("place", NOT_RUN)
def test_commands_that_no_test_runs_exist_with_these_options(place: str):
    listed = [one for one in EVERY if one.place == place and one.language == "sh"]
    for line in "\n".join(one.code for one in listed).replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["ldpstream"]:
            command = main.get_command(click.Context(main), words[1])
            assert command is not None, line
            known = {name for option in command.params for name in option.opts}
            assert {word for word in words if word.startswith("-")} <= known, line
        if words[:2] == ["python", "-m"]:
            assert importlib.util.find_spec(words[2]) is not None, line


LINK: Final = re.compile(r"\]\(([^)\s]+)\)")


FENCED: Final = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", pages())
def test_links_lead_somewhere(page: str):
    for link in LINK.findall(FENCED.sub("", (ROOT / page).read_text("utf-8"))):
        path, _, anchor = link.partition("#")
        if link.startswith(("http://", "https://")):
            continue
        target = (ROOT / page).parent / path if path else ROOT / page
        assert target.exists(), link
        if anchor:
            # A comment in a block of commands would look like a heading.
            prose = FENCED.sub("", target.read_text("utf-8"))
            headings = re.findall(r"^#+ +(.*)$", prose, re.MULTILINE)
            slugs = {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings}
            assert anchor in slugs, link


PATH: Final = re.compile(
    r"(?<![\w/.-])(?:docs|tests|agents|mechanisms|estimators|clients|docker|benchmarks)/[\w./-]*\w"
)
MADE: Final = ("docker/secrets", "mechanisms/families/plain_response.py", "shop.py")
"""Made by `make up`, and by who follows the guides to a mechanism and to an app."""


@pytest.mark.parametrize("page", pages())
def test_files_that_pages_name_are_there(page: str):
    named = PATH.findall((ROOT / page).read_text("utf-8"))
    gone = {path for path in named if not (ROOT / path).exists() and not path.startswith(MADE)}
    assert not gone


MODULE: Final = re.compile(r"`([\w/]+\.py)`")


@pytest.mark.parametrize("page", [page for page in pages() if page.startswith("docs/")])
def test_modules_that_pages_name_are_there(page: str):
    """A page may leave out the folder that it is about."""
    rooms = ("agents", "benchmarks", "estimators", "mechanisms", "tests")
    there = {path.as_posix() for room in rooms for path in (ROOT / room).rglob("*.py")}
    named = MODULE.findall((ROOT / page).read_text("utf-8"))
    made = {path for path in named if path.startswith(MADE)}
    assert not {n for n in named if not any(one.endswith(f"/{n}") for one in there)} - made


@pytest.mark.parametrize("page", [page for page in pages() if page.startswith("docs/")])
def test_the_index_lists_every_page_under_docs(page: str):
    listed = LINK.findall((ROOT / "docs" / "README.md").read_text("utf-8"))
    name = page.removeprefix("docs/")
    assert name == "README.md" or name in {link.partition("#")[0] for link in listed}


def entries(nav: Any) -> Iterator[str]:
    """Yield the pages of a navigation, in which a group may be part of a group."""
    if isinstance(nav, str):
        yield nav
    else:
        for part in nav.values() if isinstance(nav, dict) else nav:
            yield from entries(part)


def test_the_site_has_every_page_once():
    """`make docs` would only warn of a page in no group.

    Some pages are made from the code, for the site alone.
    """
    groups = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))["nav"]
    listed = list(entries(groups))
    others = [page.name for page in ROOT.glob("*.md") if page.name != "README.md"]
    there = [*pages(), *others, *script("reference").PAGES, "agents/web/page/vendor/README.md"]
    assert sorted(listed) == sorted(there)


def test_every_command_has_a_page_with_an_example_that_a_test_executes():
    made, commands = script("reference").PAGES, script("commands")
    assert [*COMMANDS] == [name for name in COMMANDS if name in commands.RELATED]
    listed = " ".join(commands.GROUPS.values()).split()
    assert sorted(listed) == sorted(COMMANDS)
    assert all(f"](commands/{name}.md)" in made["docs/reference/commands.md"]() for name in listed)
    for name in COMMANDS:
        page = made[f"docs/reference/commands/{name}.md"]()
        headings = re.findall("^## (.+)$", page, re.MULTILINE)
        assert headings == ["Example", "Options", "Errors", "See also"]
        for parameter in find_command(name).params:
            if isinstance(parameter, click.Option):
                assert all(option in page for option in parameter.opts if option[:2] == "--")
                assert parameter.help, (name, parameter.name)
        place, _, heading = commands.RELATED[name].example.partition("#")
        path = str(commands.source(place).relative_to(ROOT))
        (of, *_) = [one for one in blocks(path) if one.code == commands.example(name)[0]]
        assert of.place == f"{path}#{heading}"
        # Of what takes hours or installs, a test runs the same with other settings.
        run_by = {of.place, path} & RUN_BY.keys() or "tests/" in NOT_RUN.get(of.place, "")
        assert run_by, f"{name}: no test executes {of.place}"
        assert of.output.split() == commands.example(name)[1].split()


def test_the_site_has_every_public_name(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LDPSTREAM_READ_TOKEN", "of-nobody-else")
    made = {place: make() for place, make in script("reference").PAGES.items()}
    names = "\n".join(text for place, text in made.items() if "/python/" in place)
    described = re.findall("^## (.+)$", names, re.MULTILINE)
    assert len(described) == len(set(described))
    for module in {module for _, module, _ in script("reference").GROUPS.values()}:
        assert {*importlib.import_module(module).__all__} - {"__version__"} <= {*described}
    assert "query(\n    url: str,\n    name: str,\n    request: EstimateRequest | None" in names
    # Docstrings are set as text: their sections are lists, their examples code.
    assert "**Raises**\n\n- `ValueError`: naming the option" in names
    assert "\nRaises:" not in names
    assert "```pycon\n>>> " in names
    # The environment is a default; the page would publish its secrets.
    assert "of-nobody-else" not in names
    # Types are written as in the sources: the same in every build.
    assert not re.search("0x[0-9a-f]{6}|Annotated|ForwardRef", names)


def test_the_site_has_every_field_of_a_document():
    made = script("reference").PAGES["docs/reference/documents.md"]()
    fields = re.findall(r"^\| `(\w+)`", made, re.MULTILINE)
    assert {*EstimateDocument.model_fields, "low", "high", "forged", "until"} <= {*fields}
    headings = {one.lower() for one in re.findall("^## (.+)$", made, re.MULTILINE)}
    assert {link.removeprefix("#") for link in LINK.findall(made) if link[0] == "#"} <= headings


def test_the_table_of_what_to_touch_names_what_exists():
    lines = (ROOT / "CONTRIBUTING.md").read_text().splitlines()
    text = "\n".join(line for line in lines if line.startswith("|"))
    paths = re.findall(r"`([\w.]+/[\w./]*)`", text)
    assert len(paths) > 20
    assert [path for path in paths if not (ROOT / path).exists()] == []
    named = re.findall(r"`(\w+)` of `([\w./]+\.py)`", text)
    assert ("KINDS", "agents/state/cell_kinds.py") in named
    assert [
        name for name, path in named if not re.search(rf"\b{name}\b", (ROOT / path).read_text())
    ] == []


def test_a_page_need_not_show_what_chance_adds_to_a_table():
    block = Block("a.md", "", "sh", "", "modes, # bus 4.2% forged: this many", numbers=True)
    said = "modes, # bus 0.1%\nlow is 0 for 1 of 4 values: nothing shows that anybody has them\n"
    assert agrees(f"{said}forged: this many", block)
    assert not agrees(f"{said}forged: this many, and more", block)
