"""`ldpstream check`: configuration, broker, topics, permissions."""

import click

from ldpstream.agents.cli.terminal.common import (
    config_option,
    load_shard,
    shard_option,
    warn_of_nominal,
)
from ldpstream.agents.cli.terminal.errors import Failed
from ldpstream.agents.config.worker import Shard


@click.command()
@config_option
@shard_option
def check(config_file: str, shard: Shard) -> None:
    """Check the configuration, the broker, the topics, and the permissions on them.

    Changes nothing. Exit 1 if anything would keep a worker from running. Warns about budgets so
    large that they protect in name only, and about intervals with so many bins that their estimates
    are noise.
    """
    config = load_shard(config_file, shard).of_shard(shard)
    # Imported late: the Kafka clients take three times as long to load as the configuration.
    from ldpstream.agents.cli.plans.bins import bins_warnings
    from ldpstream.agents.cli.terminal.problems import find_problems

    names = ", ".join(config.collections) or "none"
    warn_of_nominal(config.collections.values())
    for warning in bins_warnings(config.collections.values()):
        click.echo(warning, err=True)
    click.echo(f"{config_file}: collections {names}")
    if shard.total > 1:
        click.echo(f"shard {shard}: group {config.group}")
    for collection in config.collections.values():
        for accepted in collection.accept:
            specs = f"{collection.spec.fingerprint.hex()} and still takes"
            click.echo(f"{collection.name}: counts {specs} {accepted.spec.fingerprint.hex()}")
    if problems := find_problems(config, config_file):
        raise Failed("\n".join(problems))
    click.echo("ok")
