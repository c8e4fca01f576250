"""`ldpstream worker`: the Faust worker."""

import click

from ldpstream.agents.cli.common import config_option, load


@click.command()
@config_option
def worker(config_file: str) -> None:
    """Run the Faust worker: ingest, windows, publishing, metrics, HTTP.

    Prints `ready URL` once it serves. SIGTERM and Ctrl-C flush what was read, and end it.
    """
    config = load(config_file)
    # Only now: a configuration that is refused should not wait for Faust to be imported.
    from ldpstream.agents.worker import run_worker

    run_worker(config)
