"""`ldpstream pack`: pack many single messages into one."""

from typing import Final

import click

from ldpstream.agents.terminal.common import (
    ADDRESS,
    config_option,
    load,
    number_option,
    verbose_option,
)
from ldpstream.agents.terminal.errors import Refused

_MOST_BYTES: Final = 900_000


@click.command()
@config_option
@number_option(
    "--linger",
    *(0, 60_000),
    default=100,
    metavar="MS",
    text="How long a message may wait for others, in milliseconds.",
)
@number_option(
    "--limit",
    *(1_000, _MOST_BYTES),
    default=512 << 10,
    metavar="BYTES",
    text="The largest packed message, before compression.",
)
@click.option("--http", type=ADDRESS, help="Serve /metrics, /healthz and /readyz on this address.")
@verbose_option
@click.pass_context
def pack(
    context: click.Context,
    config_file: str,
    *,
    linger: int,
    limit: int,
    http: str | None,
    verbose: bool,
) -> None:
    """Pack many messages of collections with `input = "frames"` into one each, in TOPIC.frames.

    For topics to which devices send single reports at a high rate: workers read packed ones many
    times faster. Any number of packers may run, crash and overlap: counts stay exact, and while
    none runs, workers read the source itself. Prints `ready` once it has its share of the
    partitions. On SIGTERM or Ctrl-C it sends what was read and exits.
    """
    config = load(config_file)
    # Imported late: a refused configuration should not wait for the Kafka clients to load.
    from ldpstream.agents.kafka.clients import ClientOptionError, connection
    from ldpstream.agents.packing.assigned import PackOptions
    from ldpstream.agents.packing.run import packed_collections, run_packer

    if not packed_collections(config):
        raise Refused(
            f'{config_file}: expected input = "frames" in at least one collection, got none'
        )
    try:
        connection(config.kafka.bootstrap, config.kafka.options)
    except ClientOptionError as error:
        raise Refused(f"{config_file}: {error}") from error
    options = PackOptions(linger_ms=linger, limit_bytes=limit)
    context.exit(run_packer(config, options, http=http, verbose=verbose))
