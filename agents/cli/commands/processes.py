"""Declare the commands that run until a signal ends them.

`--help` needs nothing else, so each imports its work once it runs.
"""

from typing import Any, Final

import click

from ldpstream.agents.cli.terminal.options import config_option, shard_option, verbose_option
from ldpstream.agents.cli.terminal.parameters import Real, Whole

_DEFAULT_RATE: Final = 10_000


@click.command()
@config_option
@shard_option
@click.option("--verbose", is_flag=True, help="Also log what Faust and the Kafka clients say.")
@click.pass_context
def worker(context: click.Context, /, **options: Any) -> None:
    """Run the Faust worker: ingest, windows, publishing, metrics, HTTP.

    Prints `ready URL` once it serves. On SIGTERM or Ctrl-C it flushes what was read and exits.
    """
    from ldpstream.agents.cli.processes import start_worker

    start_worker(context, **options)


@click.command()
@config_option
@verbose_option
@click.pass_context
def gateway(context: click.Context, /, **options: Any) -> None:
    """Take frames over HTTP from devices that cannot speak Kafka, and produce them.

    An upload is acknowledged once the broker has it, and counts once however often it is repeated
    with the same key. Prints `ready URL` once it serves. On SIGTERM or Ctrl-C it finishes accepted
    uploads and exits. Settings: [gateway] of the configuration.
    """
    from ldpstream.agents.cli.processes import start_gateway

    start_gateway(context, **options)


@click.command()
@click.option(
    "--port",
    type=Whole(1, 65_535),
    default=9092,
    show_default=True,
    metavar="PORT",
    help="Port on the loopback interface.",
)
def devbroker(**options: Any) -> None:
    """Run the embedded development broker until Ctrl-C or SIGTERM.

    Prints `ready HOST:PORT` once it serves. Data live in memory, and are gone when it ends.
    Clients need `enable_idempotence = false` under [kafka].
    """
    from ldpstream.agents.cli.processes import start_broker

    start_broker(**options)


@click.command()
@click.option(
    "--seconds",
    type=Real(min=0, min_open=True, max=86_400),
    metavar="N",
    help="End after this many seconds of reports; otherwise Ctrl-C ends it.",
)
@click.option(
    "--port",
    type=Whole(0, 65_535),
    metavar="PORT",
    help="Port of the page and the API; 0 takes any free one. Default: 6066 if free.",
)
@click.option(
    "--rate",
    type=Whole(100, 200_000),
    default=_DEFAULT_RATE,
    show_default=True,
    metavar="N",
    help="Reports a second.",
)
@click.pass_context
def demo(context: click.Context, /, **options: Any) -> None:
    """Run an embedded broker, a worker, and simulated devices that report rides in a city.

    Prints estimates next to the truth, serves the live page, and ends with a summary; exit code 0
    if every report is accounted for.
    """
    from ldpstream.agents.cli.demonstration.run import run_demo

    context.exit(run_demo(**options))
