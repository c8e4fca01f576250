"""Write the pages that only the site has: `python .ci/reference.py FOLDER`.

All commands with their options, all public names of Python, all keys of the configuration, all
fields of documents and all metrics, as they describe themselves; and the mistakes with their
messages, as recorded.
"""

import inspect
import re
import sys
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from textwrap import dedent
from typing import Any, Final, cast, get_type_hints

import commands
from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from ldpstream import __version__
from ldpstream.agents.cli.configuration import page
from ldpstream.agents.cli.main import COMMANDS
from ldpstream.agents.document.model import EstimateDocument
from ldpstream.agents.edge.gateway_app import GatewayMetrics
from ldpstream.agents.engine.gauges import PipelineCollector
from ldpstream.agents.engine.metrics import Metrics
from ldpstream.mechanisms.base.canonical import Json

COLUMNS: Final = 100
_PATH: Final = re.compile(r"\b(?:[a-z_]\w*\.)+(?=[A-Za-z])")
"""The modules before a type's name."""
GROUPS: Final = {
    "collections": (
        "Collections and reports",
        "ldpstream",
        "define_collection load_collection privatize read_reports ReportSet",
    ),
    "estimates": (
        "Estimates",
        "ldpstream",
        (
            "estimate EstimateRequest BoxRequest LinearRequest EstimateDocument to_frame plot "
            "store_documents"
        ),
    ),
    "plans": ("Plans and certificates", "ldpstream", "plan PlanDocument certify Certificate"),
    "driver": ("A pipeline in tests", "ldpstream", "Driver"),
    "queries": ("Questions to a worker", "ldpstream", ""),
    "client": ("A client for programs that await", "ldpstream.agents.client", ""),
    "device": ("Devices that speak Kafka", "ldpstream.agents.device", ""),
    "ledger": ("The ledger of a device", "ldpstream.mechanisms.ledger", ""),
    "specs": (
        "Specs and frames",
        "ldpstream.mechanisms",
        (
            "CollectionSpec load_spec Frame encode_frame decode_frame frame_fingerprint FrameError "
            "SpecError ValueOutsideDomainError"
        ),
    ),
    "domains": (
        "Domains",
        "ldpstream.mechanisms",
        "Domain Labels Size Sizes Grid Interval Blocks",
    ),
    "policies": (
        "Policies",
        "ldpstream.mechanisms",
        (
            "Policy BlockPolicy HighLowPolicy BinaryPolicy MatrixPolicy GraphPolicy MetricPolicy "
            "closure compose implies"
        ),
    ),
    "mechanisms": ("Mechanisms and channels", "ldpstream.mechanisms", ""),
    "configuration": ("A configuration as objects", "ldpstream.agents.config", ""),
    "worker": ("A worker, or the pipeline in your app", "ldpstream.agents.worker", ""),
    "web": ("The page and the API of a pipeline", "ldpstream.agents.web", ""),
}
"""The pages of Python: title, module, and names of it; without names, all that no other has."""
_OF_METRICS: Final = """\
With their texts as in `/metrics`. No label identifies a device, and only values that the
configuration lists are shown. Counters start at zero with their process: sum their rates. Rules,
alerts and dashboards: [monitor](../how-to/monitor.md).
"""
"""What precedes the metrics on their page."""
_OF_DOCUMENTS: Final = """\
*For programs that read estimates, from the topic, over HTTP or out of a file. What the numbers say
is [another page](../concepts/estimates-and-bounds.md).* `ldpstream keys --documents` prints the
same as JSON Schema. A field with `?` may be missing.
"""
"""What precedes the fields on their page."""
_OF_WORKERS: Final = """\
Estimates, what is said of the newest windows, and the test of the priors come from the worker that
owns partition 0; the state of a partition comes from every worker, so take the maximum.

### Choosing `grace`

The grace with which one report in a thousand would have been late:

```text
histogram_quantile(0.999,
  sum by (le) (rate(ldpstream_lateness_seconds_bucket{collection="NAME"}[1d])))
```

The bucket `le="60.0"` divided by `le="+Inf"`, as rates, is the share on time with a grace of a
minute.

`ldpstream_delay_seconds` shows the clocks of devices: negative delays are dated ahead, and a peak
far above the rest is a slow clock or a queue. Times are cut to `precision`, so a delay is too long
by up to that.
"""
"""What follows those of a worker."""


def names() -> str:
    """Return the list of all public names of Python, each with its page and its first sentence."""
    lines = [f"# Every public name of ldpstream {__version__}", "", "*Each with its page.*", ""]
    for file, (title, module, _) in GROUPS.items():
        lines += [f"## {title}", "", f"In `{module}`.", "", "| name | |", "|---|---|"]
        for name, offered in _of_page(file):
            said = (inspect.getdoc(offered) or "") if callable(offered) else ""
            first = re.split(r"(?<=\.)\s", said.replace("|", "\\|").replace("<", "&lt;") + " ")[
                0
            ].replace("\n", " ")
            lines.append(f"| [`{name}`](python/{file}.md#{name.lower()}) | {first} |")
        lines.append("")
    return "\n".join(lines)


def _of_page(page: str) -> Iterator[tuple[str, Any]]:
    """Yield a page's names. What several modules offer stands where it is first."""
    _, module, listed = GROUPS[page]
    before = [(of, names.split()) for name, (_, of, names) in GROUPS.items() if name != page]
    others = {name for of, names in before if of == module for name in names}
    if module != "ldpstream":
        others |= {*import_module("ldpstream").__all__}
    offered = import_module(module)
    for name in listed.split() or sorted({*offered.__all__} - others - {"__version__"}):
        yield name, getattr(offered, name)


def group(page: str) -> str:
    """Return the page of some public names."""
    title, module, _ = GROUPS[page]
    lines = [f"# {title}", "", f"From `{module}`.", ""]
    for name, offered in _of_page(page):
        lines += _described(name, offered)
    return "\n".join(lines)


def _described(name: str, offered: Any) -> Iterator[str]:
    yield from (f"## {name}", "")
    if not callable(offered):
        yield from (*_fenced(f"{name} = {offered!r}"[:COLUMNS], "python"), "")
        return
    yield from (*_fenced(_declared(name, offered), "python"), "")
    yield from (markdown(inspect.getdoc(offered) or ""), "")
    fields = getattr(offered, "model_fields", {})
    described = {of.alias or one: of.description for one, of in fields.items() if of.description}
    if described:
        yield from ("| field | |", "|---|---|")
        for field, text in described.items():
            yield f"| `{field}` | {markdown(text).replace('|', '&#124;')} |"
        yield ""
    if not inspect.isclass(offered):
        return
    for method, of in vars(offered).items():
        inner = getattr(of, "__func__", of)
        if method.startswith("_") or not (inspect.isfunction(inner) or isinstance(of, property)):
            continue
        yield from (f"### {name}.{method}", "")
        if callable(inner):
            yield from (*_fenced(_declared(method, inner), "python"), "")
        yield from (markdown(inspect.getdoc(of) or ""), "")


_SECTION: Final = re.compile(r"^(Raises|Args|Returns|Yields):\n((?:[ \t]+.*\n?|\n)+)", re.MULTILINE)
_ITEM: Final = re.compile(r"^ {4}(?=\S)", re.MULTILINE)
_SESSION: Final = re.compile(r"^>>> .*\n(?:.+\n?)*", re.MULTILINE)
_LITERAL: Final = re.compile(r"::\n\n((?:    .*\n?|\n)+)")


def markdown(docstring: str) -> str:
    """Return a docstring as Markdown: sections as lists, examples as code, pages as links."""
    text = _LITERAL.sub(lambda one: f":\n\n```python\n{dedent(one[1]).strip()}\n```\n", docstring)
    text = _SECTION.sub(_listed, text)
    text = _SESSION.sub(lambda one: f"```pycon\n{one[0].rstrip()}\n```\n", text)
    parts = re.split(r"(```.*?```|`[^`\n]*`)", text, flags=re.DOTALL)
    prose = [one.replace("<", "&lt;") if not one.startswith("`") else one for one in parts]
    return re.sub(r"\bdocs/([\w/-]+)\.md", r"[\1](../../\1.md)", "".join(prose))


def _listed(section: re.Match[str]) -> str:
    items = [" ".join(item.split()) for item in _ITEM.split(section[2]) if item.strip()]
    named = [re.sub(r"^(\w+):", r"`\1`:", item) for item in items]
    return f"**{section[1]}**\n\n" + "\n".join(f"- {item}" for item in named) + "\n"


def _declared(name: str, offered: Any) -> str:
    """Return a name with its parameters, one a line if they are long."""
    try:
        signature = inspect.signature(offered)
    except ValueError:
        # An error that takes what Exception takes.
        return name
    # As somebody would write them: without the limits and forms that models add to types.
    hints = _hints(offered)
    if inspect.isclass(offered):
        hints = {**_hints(offered.__init__), **hints}
        # Fields of a model are given by their names in files.
        fields = getattr(offered, "model_fields", {})
        hints |= {of.alias: hints[one] for one, of in fields.items() if of.alias}
    given = [
        one.replace(annotation=hints.get(one.name, one.annotation), default=_plain(one.default))
        for one in signature.parameters.values()
    ]
    returned = hints.get("return", signature.empty) if not inspect.isclass(offered) else None
    signature = signature.replace(parameters=given, return_annotation=signature.empty)
    after = (
        "" if returned in (None, signature.empty) else f" -> {inspect.formatannotation(returned)}"
    )
    line = _shortened(f"{name}{signature}{after}")
    if len(line) <= COLUMNS:
        return line
    listed = "".join(f"    {one},\n" for one in _separated(signature))
    return _shortened(f"{name}(\n{listed}){after}")


def _plain(default: Any) -> Any:
    """Return a default that is written out; others, such as the environment, are not."""
    if default is inspect.Parameter.empty or default is None:
        return default
    return default if isinstance(default, bool | int | float | str | tuple | list | Path) else ...


def _shortened(text: str) -> str:
    """Return a declaration without the modules of its types, and with the name of that of JSON."""
    # Each look at the hints of something writes one more level of its recursion out.
    written = inspect.formatannotation(get_type_hints(_of_json)["json"])
    return _PATH.sub("", text.replace(written, "Json").replace("-> NoneType", "-> None"))


def _of_json(json: Json) -> None: ...


def _hints(offered: Any) -> dict[str, Any]:
    try:
        return get_type_hints(offered)
    except NameError:
        # Of a library that is imported for its types only: they stay as they are written.
        return {}


def _separated(signature: inspect.Signature) -> Iterator[str]:
    """Yield parameters as they are written, with the star before those that need their names."""
    kinds = {one.kind for one in signature.parameters.values()}
    starred = inspect.Parameter.VAR_POSITIONAL in kinds
    for one in signature.parameters.values():
        if one.kind is inspect.Parameter.KEYWORD_ONLY and not starred:
            starred = True
            yield "*"
        yield str(one)


def _fenced(text: str, language: str) -> list[str]:
    return [f"```{language}", text.rstrip(), "```"]


def metrics() -> str:
    """Return the page of all metrics, by the process that exports them."""
    gauges = PipelineCollector(cast("Any", None), {})
    processes = {
        "Worker": [*_collectors(Metrics().registry), gauges],
        "Gateway": _collectors(GatewayMetrics([]).registry),
    }
    lines = [f"# Every metric of ldpstream {__version__}", "", _OF_METRICS]
    for process, collectors in processes.items():
        lines += [f"## {process}", "", "| metric | kind | |", "|---|---|---|"]
        for family, labels in _families(collectors):
            name = f"{family.name}_total" if family.type == "counter" else family.name
            shown = f"{name}{{{', '.join(labels)}}}" if labels else name
            lines.append(f"| `{shown}` | {family.type} | {family.documentation} |")
        lines += ["", *([_OF_WORKERS] if process == "Worker" else [])]
    return "\n".join(lines)


def _collectors(registry: CollectorRegistry) -> list[Collector]:
    return list(registry._collector_to_names)  # noqa: SLF001 (it lists them in no other way)


def _families(collectors: list[Collector]) -> Iterator[tuple[Metric, tuple[str, ...]]]:
    """Yield the metrics of ldpstream with their labels, without those of any process."""
    for collector in collectors:
        for family in getattr(collector, "describe", collector.collect)():
            if family.name.startswith("ldpstream_"):
                labelled = family if hasattr(family, "_labelnames") else collector
                yield family, tuple(labelled._labelnames)  # noqa: SLF001 (as above)


def mistakes() -> str:
    """Return the page of mistakes and their messages."""
    return commands.RECORDED.read_text("utf-8")


def documents() -> str:
    """Return the page of estimate documents: every field, the whole document first."""
    models = EstimateDocument.model_json_schema()["$defs"]
    lines = [f"# Every field of a document of ldpstream {__version__}", "", _OF_DOCUMENTS]
    for name in ("EstimateDocument", *(one for one in models if one != "EstimateDocument")):
        fields = models[name].get("properties")
        if not fields:
            continue
        lines += [f"## {name}", "", models[name].get("description", ""), ""]
        lines += ["| field | type | |", "|---|---|---|"]
        for field, of in fields.items():
            optional = "" if field in models[name].get("required", []) else "?"
            lines.append(f"| `{field}`{optional} | {_typed(of)} | {of.get('description', '')} |")
        lines.append("")
    return "\n".join(lines)


def _typed(schema: dict[str, Any]) -> str:
    """Return a type of JSON in a word or two, with a link where it has a table of its own."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return "any" if name == "JsonValue" else f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(_typed(one) for one in schema["anyOf"])
    if "enum" in schema:
        return " or ".join(f"`{one}`" for one in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_typed(schema['items'])}" if "items" in schema else "list"
    return str(schema.get("type", "any"))


PAGES: Final = {
    "docs/reference/documents.md": documents,
    "docs/reference/commands.md": commands.overview,
    **{
        f"docs/reference/commands/{name}.md": partial(commands.command, name, markdown)
        for name in COMMANDS
    },
    "docs/reference/names.md": names,
    **{f"docs/reference/python/{page}.md": partial(group, page) for page in GROUPS},
    "docs/reference/keys.md": page,
    "docs/reference/metrics.md": metrics,
    "docs/reference/mistakes.md": mistakes,
}
"""What makes each page, by where it stands in the site."""


def main(folder: Path) -> None:
    """Write all pages below a folder."""
    for place, made in PAGES.items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_text(made(), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
