"""`ldpstream gateway`: take uploads over HTTP, and produce them."""

from dataclasses import replace

import click

from ldpstream.agents.cli.terminal.common import ADDRESS, config_option, load, verbose_option
from ldpstream.agents.cli.terminal.errors import Refused


@click.command()
@config_option
@click.option("--http", type=ADDRESS, help="The address to serve instead of gateway.http.")
@verbose_option
@click.pass_context
def gateway(context: click.Context, config_file: str, *, http: str | None, verbose: bool) -> None:
    """Take frames over HTTP from devices that cannot speak Kafka, and produce them.

    An upload is acknowledged once the broker has it, and counts once however often it is repeated
    with the same key. Prints `ready URL` once it serves. On SIGTERM or Ctrl-C it finishes accepted
    uploads and exits. Settings: [gateway] of the configuration.
    """
    config = load(config_file)
    if http is not None:
        config = replace(config, gateway=config.gateway.model_copy(update={"http": http}))
    # Imported late: a refused configuration should not wait for the Kafka clients to load.
    from ldpstream.agents.broker.clients import ClientOptionError, connection
    from ldpstream.agents.edge.gateway_process import check_gateway, run_gateway
    from ldpstream.agents.web import HttpUnavailableError

    try:
        check_gateway(config)
        connection(config.kafka.bootstrap, config.kafka.options)
    except (ClientOptionError, HttpUnavailableError) as error:
        raise Refused(f"{config_file}: {error}") from error
    context.exit(run_gateway(config, verbose=verbose))
