"""`ldpstream gateway`: uploads over HTTP."""

from dataclasses import replace

import click

from ldpstream.agents.terminal.common import AddressParameter, config_option, load, verbose_option
from ldpstream.agents.terminal.errors import Refused


@click.command()
@config_option
@click.option("--http", type=AddressParameter(), help="Serve this address, not gateway.http.")
@verbose_option
@click.pass_context
def gateway(context: click.Context, config_file: str, *, http: str | None, verbose: bool) -> None:
    """Take frames over HTTP from devices that cannot speak Kafka, and produce them.

    An upload is answered once the broker has it, and counts once however often it is repeated
    under its key. Prints `ready URL` once it serves. SIGTERM and Ctrl-C finish what was taken, and
    end it. Settings: [gateway] of the configuration; docs/gateway.md.
    """
    config = load(config_file)
    if http is not None:
        config = replace(config, gateway=config.gateway.model_copy(update={"http": http}))
    # Only now: a configuration that is refused should not wait for the clients to be imported.
    from ldpstream.agents.gateway.run import check_gateway, run_gateway
    from ldpstream.agents.http import HttpUnavailableError
    from ldpstream.agents.kafka.clients import ClientOptionError, connection

    try:
        check_gateway(config)
        connection(config.kafka.bootstrap, config.kafka.options)
    except (ClientOptionError, HttpUnavailableError) as error:
        raise Refused(f"{config_file}: {error}") from error
    context.exit(run_gateway(config, verbose=verbose))
