"""`ldpstream worker`: the Faust worker."""

import click

from ldpstream.agents.cli.common import config_option, load


@click.command()
@config_option
@click.option("--verbose", is_flag=True, help="Show what the libraries log, with tracebacks.")
@click.pass_context
def worker(ctx: click.Context, config_file: str, *, verbose: bool) -> None:
    """Run the worker: ingest, windows, publishing, metrics, HTTP.

    Prints `ready URL` once it serves; SIGTERM flushes and exits 0.
    """
    config = load(config_file)
    # Faust takes a moment to import, and no other command needs it.
    from ldpstream.agents.worker import run_worker

    ctx.exit(run_worker(config, verbose=verbose))
