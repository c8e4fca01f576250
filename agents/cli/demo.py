"""`ldpstream demo`: broker, worker, simulated devices and page in one go."""

from typing import Final

import click

from ldpstream.agents.cli.terminal.parameters import Real, Whole

_DEFAULT_RATE: Final = 10_000
_LARGEST_SEED: Final = (1 << 63) - 1


@click.command()
@click.option(
    "--seconds",
    type=Real(min=0, min_open=True, max=86_400),
    metavar="N",
    help="End after this many seconds of reports; otherwise Ctrl-C ends it.",
)
@click.option(
    "--port",
    type=Whole(0, 65_535),
    metavar="PORT",
    help="Port of the page and the API; 0 takes any free one. Default: 6066 if free.",
)
@click.option(
    "--rate",
    type=Whole(100, 200_000),
    default=_DEFAULT_RATE,
    show_default=True,
    metavar="N",
    help="Reports a second.",
)
@click.option(
    "--seed",
    type=Whole(0, _LARGEST_SEED),
    default=1,
    show_default=True,
    metavar="N",
    help="Seed of the values; reports use the operating system's randomness.",
)
@click.pass_context
def demo(
    context: click.Context, seconds: float | None, port: int | None, rate: int, seed: int
) -> None:
    """Run an embedded broker, a worker, and simulated devices that visit places of a city.

    Prints estimates next to the truth, serves the live page, and ends with a summary; exit code 0
    if every report is accounted for.
    """
    # Faust takes a moment to import, and `--help` does not need it.
    from ldpstream.agents.cli.demonstration.run import DemoOptions, run_demo

    context.exit(run_demo(DemoOptions(seconds=seconds, port=port, rate=rate, seed=seed)))
