"""`ldpstream devbroker`: the embedded broker on its own, for a first look without Apache Kafka."""

import signal
import socket
import threading
from typing import Final

import click

from ldpstream.agents.cli.terminal.errors import Failed
from ldpstream.agents.cli.terminal.parameters import Whole

_LOOK_SECONDS: Final = 0.5


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
    Clients need `enable_idempotence = false` under [kafka], as `ldpstream init --embedded` writes.
    """
    # `--help` needs none of it.
    from ldpstream.agents.broker.embedded import embedded_broker
    from ldpstream.agents.broker.refusals import BrokerUnavailableError

    _refuse_taken(port)
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


def _refuse_taken(port: int) -> None:
    """Refuse a port in use: clients would take whatever serves there for our broker."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise Failed(
                f"cannot serve on 127.0.0.1:{port}: {error.strerror}; choose another --port, and "
                "bootstrap under [kafka]"
            ) from error
