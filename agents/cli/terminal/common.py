"""What several commands share: the configuration and its collections, refusals, printing."""

import gc
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import click

from ldpstream.agents.cli.terminal.errors import Failed, Refused
from ldpstream.agents.config import CollectionConfig, Config, ConfigError, load_config
from ldpstream.agents.config.collection import nominal_warnings
from ldpstream.agents.config.worker import Shard
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.base.texts import count as count

CHUNK: Final = 20_000
"""Lines that are read and processed at once: so many that the processor's cache holds them."""


def collect_rarely() -> None:
    """Have garbage collected rarely: a command that reads many lines makes objects, but no cycles.

    Otherwise all rows of a chunk would be looked at again and again.
    """
    gc.freeze()
    gc.set_threshold(10 * CHUNK)


def load(config_file: str) -> Config:
    """Load the configuration."""
    try:
        return load_config(config_file)
    except (ConfigError, SpecError) as error:
        missing = not Path(config_file).exists()
        way = ": choose one with -c FILE, or write one with `ldpstream init`" if missing else ""
        raise Refused(f"{error}{way}") from error


def load_shard(config_file: str, shard: Shard) -> Config:
    """Load the configuration, with all collections, for a worker of a shard."""
    config = load(config_file)
    if shard.total > 1 and config.worker.advertise is None:
        raise Refused(
            f"{config_file}: worker.advertise: expected this worker's address for those of other "
            'shards, such as "http://worker-2:6066", got none; or set LDPSTREAM_ADVERTISE'
        )
    return config


def load_collection(config_file: str, name: str) -> tuple[Config, CollectionConfig]:
    """Load the configuration and find one of its collections."""
    config = load(config_file)
    if name not in config.collections:
        names = ", ".join(config.collections)
        raise Refused(f"{config_file}: expected one of the collections {names}, got {name}")
    return config, config.collections[name]


def warn_of_nominal(collections: Iterable[CollectionConfig]) -> None:
    """Say on standard error which of these, or of the specs they accept, protect in name only."""
    for warning in nominal_warnings(collections):
        click.echo(warning, err=True)


def refuse_one_report(collection: CollectionConfig, what: str) -> None:
    """Refuse a collection with `one_report` where devices cannot be distinguished."""
    if collection.spec.one_report is not None:
        raise Refused(f"collection.{collection.name}.one_report: expected {what}")


def refuse_words(collection: CollectionConfig) -> None:
    """Refuse a collection of unknown words where nothing keeps a device to one round."""
    if collection.spec.words is not None:
        raise Refused(
            f"collection.{collection.name}.domain.words: expected send --ledger, which takes part "
            "in one round"
        )


def print_data(data: bytes | str) -> None:
    """Print what programs read, JSON or CSV, in UTF-8, whatever the terminal's encoding is."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data if isinstance(data, bytes) else f"{data}\n".encode())
    sys.stdout.buffer.flush()


def confirm(question: str) -> None:
    """Ask on standard error, and return after a yes."""
    try:
        confirmed = click.confirm(question, err=True)
    except click.Abort:
        click.echo(err=True)
        raise Failed("nothing was changed: nobody answered; give --yes to not be asked") from None
    if not confirmed:
        raise Failed("nothing was changed")
