"""Commands that run until a signal ends them: `worker`, `gateway`, `devbroker` and `demo`.

What they run is imported by each: `--help` and a refused configuration do not wait for it.
"""

import signal
import threading
from typing import Final

import click

from ldpstream.agents.cli.terminal.common import (
    config_option,
    load,
    load_shard,
    shard_option,
    verbose_option,
    warn_of_nominal,
)
from ldpstream.agents.cli.terminal.errors import Failed, Refused
from ldpstream.agents.cli.terminal.parameters import Real, Whole
from ldpstream.agents.config.worker import Shard

_LOOK_SECONDS: Final = 0.5

_DEFAULT_RATE: Final = 10_000
_LARGEST_SEED: Final = (1 << 63) - 1


@click.command()
@config_option
@shard_option
@click.option("--verbose", is_flag=True, help="Also log what Faust and the Kafka clients say.")
@click.pass_context
def worker(context: click.Context, config_file: str, *, shard: Shard, verbose: bool) -> None:
    """Run the Faust worker: ingest, windows, publishing, metrics, HTTP.

    Prints `ready URL` once it serves. On SIGTERM or Ctrl-C it flushes what was read and exits.
    """
    config = load_shard(config_file, shard)
    warn_of_nominal(config.of_shard(shard).collections.values())
    # Imported late: a refused configuration should not wait for Faust to load.
    from ldpstream.agents.config.client_options import ClientOptionError
    from ldpstream.agents.worker import faust_settings, run_worker

    try:
        faust_settings(
            config.kafka.bootstrap, config.kafka.options, instance=config.worker.instance
        )
    except ClientOptionError as error:
        raise Refused(f"{config_file}: {error}") from error
    context.exit(run_worker(config, shard=shard, verbose=verbose))


@click.command()
@config_option
@verbose_option
@click.pass_context
def gateway(context: click.Context, config_file: str, *, verbose: bool) -> None:
    """Take frames over HTTP from devices that cannot speak Kafka, and produce them.

    An upload is acknowledged once the broker has it, and counts once however often it is repeated
    with the same key. Prints `ready URL` once it serves. On SIGTERM or Ctrl-C it finishes accepted
    uploads and exits. Settings: [gateway] of the configuration.
    """
    config = load(config_file)
    # Imported late: a refused configuration should not wait for the Kafka clients to load.
    from ldpstream.agents.broker.clients import connection
    from ldpstream.agents.config.client_options import ClientOptionError
    from ldpstream.agents.edge.gateway_process import check_gateway, run_gateway
    from ldpstream.agents.web import HttpUnavailableError

    try:
        check_gateway(config)
        connection(config.kafka.bootstrap, config.kafka.options)
    except (ClientOptionError, HttpUnavailableError) as error:
        raise Refused(f"{config_file}: {error}") from error
    context.exit(run_gateway(config, verbose=verbose))


@click.command()
@click.option(
    "--port",
    type=Whole(1, 65_535),
    default=9092,
    show_default=True,
    metavar="PORT",
    help="Port on the loopback interface.",
)
def devbroker(port: int) -> None:
    """Run the embedded development broker until Ctrl-C or SIGTERM.

    Prints `ready HOST:PORT` once it serves. Data live in memory, and are gone when it ends.
    Clients need `enable_idempotence = false` under [kafka].
    """
    # `--help` needs none of it.
    from ldpstream.agents.broker.embedded import embedded_broker
    from ldpstream.agents.broker.refusals import BrokerUnavailableError

    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    try:
        with embedded_broker(port=port) as broker:
            click.echo(f"ready {broker.bootstrap}")
            while broker.running:
                if stop.wait(_LOOK_SECONDS):
                    return
            output = " ".join(broker.guarded.output().split())
            raise Failed(f"the embedded broker ended: {output or 'it did not say why'}")
    except BrokerUnavailableError as error:
        raise Failed(str(error)) from error


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
@click.option(
    "--seed",
    type=Whole(0, _LARGEST_SEED),
    default=1,
    show_default=True,
    metavar="N",
    help="Seed of the values; reports use the operating system's randomness.",
)
@click.pass_context
def demo(
    context: click.Context, seconds: float | None, port: int | None, rate: int, seed: int
) -> None:
    """Run an embedded broker, a worker, and simulated devices that report rides in a city.

    Prints estimates next to the truth, serves the live page, and ends with a summary; exit code 0
    if every report is accounted for.
    """
    # Faust takes a moment to import, and `--help` does not need it.
    from ldpstream.agents.cli.demonstration.run import DemoOptions, run_demo

    context.exit(run_demo(DemoOptions(seconds=seconds, port=port, rate=rate, seed=seed)))
