"""`ldpstream worker`: run the Faust worker."""

import click

from ldpstream.agents.cli.terminal.common import (
    config_option,
    load_shard,
    shard_option,
    warn_of_nominal,
)
from ldpstream.agents.cli.terminal.errors import Refused
from ldpstream.agents.config.worker import Shard


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
    from ldpstream.agents.engine.stores import why_no_store
    from ldpstream.agents.worker import faust_settings, run_worker

    if why := why_no_store(config.worker):
        raise Refused(f"{config_file}: {why}")
    try:
        faust_settings(
            config.kafka.bootstrap, config.kafka.options, instance=config.worker.instance
        )
    except ClientOptionError as error:
        raise Refused(f"{config_file}: {error}") from error
    context.exit(run_worker(config, shard=shard, verbose=verbose))
