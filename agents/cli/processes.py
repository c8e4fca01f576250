"""Commands that run until a signal ends them: `worker`, `gateway` and `devbroker`.

What they run is imported by each: a refused configuration does not wait for it.
"""

import signal
import threading
from typing import Final

import click

from ldpstream.agents.cli.terminal.common import (
    load,
    load_shard,
    warn_of_nominal,
)
from ldpstream.agents.cli.terminal.errors import Failed, Refused
from ldpstream.agents.config.worker import Shard

_LOOK_SECONDS: Final = 0.5


def start_worker(context: click.Context, config_file: str, *, shard: Shard, verbose: bool) -> None:
    """Run a worker of a shard until a signal ends it."""
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


def start_gateway(context: click.Context, config_file: str, *, verbose: bool) -> None:
    """Run the gateway until a signal ends it."""
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


def start_broker(port: int) -> None:
    """Run the embedded broker until a signal ends it."""
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
