"""Write the pages that only the site has: `python .ci/reference.py FOLDER`.

All commands with their options, all public names of Python, all keys of the configuration and all
metrics, as they describe themselves; and the mistakes with their messages, as recorded.
"""

import inspect
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final, cast, get_type_hints

import click
from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from ldpstream import __version__
from ldpstream.agents.cli.configuration import page
from ldpstream.agents.cli.main import COMMANDS, find_command
from ldpstream.agents.edge.gateway_app import GatewayMetrics
from ldpstream.agents.engine.gauges import PipelineCollector
from ldpstream.agents.engine.metrics import Metrics
from ldpstream.mechanisms.base.canonical import Json

COLUMNS: Final = 100
RECORDED: Final = Path(__file__).parents[1] / "tests" / "mistakes" / "mistakes.md"
"""What `python -m tests.mistakes` prints; its test compares the two."""
_PATH: Final = re.compile(r"\b(?:[a-z_]\w*\.)+(?=[A-Za-z])")
"""The modules before a type's name."""
MODULES: Final = {
    "ldpstream": "What analysts and tests need",
    "ldpstream.mechanisms": "What a device needs, with numpy alone",
    "ldpstream.mechanisms.ledger": "A device's account",
    "ldpstream.agents.device": "Devices that speak Kafka",
    "ldpstream.agents.client": "Programs that await a worker's answers",
    "ldpstream.agents.config": "A configuration as objects",
    "ldpstream.agents.worker": "A worker, or the pipeline in an app of your own",
    "ldpstream.agents.web": "The page, the API and the metrics of a pipeline",
}
"""The modules whose names are public, those of `__all__`, and what they are for."""
_OF_METRICS: Final = """\
With their texts as in `/metrics`. No label identifies a device, and only values that the
configuration lists are shown. Counters start at zero with their process: sum their rates. Rules,
alerts and dashboards: [monitor](../how-to/monitor.md).
"""
"""What precedes the metrics on their page."""
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


def commands() -> str:
    """Return the page of all commands, in the order of use."""
    lines = [f"# Every command of ldpstream {__version__}", "", "As `--help` prints them.", ""]
    for name in COMMANDS:
        context = click.Context(
            find_command(name),
            info_name=f"ldpstream {name}",
            terminal_width=COLUMNS,
            max_content_width=COLUMNS,
        )
        lines += [f"## {name}", "", *_fenced(context.get_help(), "text"), ""]
    return "\n".join(lines)


def names() -> str:
    """Return the page of all public names of Python."""
    lines = [f"# Every public name of ldpstream {__version__}", ""]
    for module, what in MODULES.items():
        lines += [f"## {module}", "", f"{what}.", ""]
        offered = import_module(module)
        for name in sorted(offered.__all__):
            if name != "__version__":
                lines += _described(name, getattr(offered, name))
    return "\n".join(lines)


def _described(name: str, offered: Any) -> Iterator[str]:
    yield from (f"### {name}", "")
    if not callable(offered):
        yield from (*_fenced(f"{name} = {offered!r}"[:COLUMNS], "python"), "")
        return
    yield from (*_fenced(_declared(name, offered), "python"), "")
    yield from (*_fenced(inspect.getdoc(offered) or "", "text"), "")
    if not inspect.isclass(offered):
        return
    for method, of in vars(offered).items():
        inner = getattr(of, "__func__", of)
        if method.startswith("_") or not (inspect.isfunction(inner) or isinstance(of, property)):
            continue
        declared = _declared(method, inner) if callable(inner) else method
        said = f"{declared}\n\n{inspect.getdoc(of) or ''}"
        yield from (f"**{name}.{method}**", "", *_fenced(said, "text"), "")


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
    return RECORDED.read_text("utf-8")


PAGES: Final = {
    "docs/reference/commands.md": commands,
    "docs/reference/names.md": names,
    "docs/reference/keys.md": page,
    "docs/reference/metrics.md": metrics,
    "docs/reference/mistakes.md": mistakes,
}
"""What makes each page, by where it stands in the site."""


def main(folder: Path) -> None:
    """Write all pages below a folder."""
    for place, made in PAGES.items():
        (folder / place).write_text(made(), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
