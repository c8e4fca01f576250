"""The `ldpstream` command: find the subcommand, and turn refusals into messages."""

import atexit
import errno
import gc
import io
import os
import sys
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Never

import click

from ldpstream import __version__
from ldpstream.agents.cli.terminal.errors import FAILED, REFUSED

INTERRUPTED: Final = 130
_OF_WRITING: Final = frozenset(
    {errno.EAGAIN, errno.EBADF, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOSPC, errno.EPIPE}
)

COMMANDS: Final = {
    "init": "Write a commented configuration.",
    "keys": "Explain every key of a configuration.",
    "check": "Check configuration, broker, topics and permissions.",
    "spec": "Print what devices in any language need.",
    "privatize": "Turn values into reports, one JSON object per line.",
    "estimate": "Estimate from the reports that privatize wrote.",
    "certify": "Prove what the mechanisms leak, in exact arithmetic.",
    "plan": "Compare the mechanisms that satisfy a collection's policy.",
    "worker": "Run the Faust worker.",
    "gateway": "Take uploads over HTTP from devices that cannot speak Kafka.",
    "send": "Privatize values and produce the reports.",
    "ledger": "Show what a device's ledger has spent.",
    "close": "Close all panes up to a time, at the end of a replay.",
    "backup": "Store a collection's state in a file.",
    "reset": "Start a collection over, continue a back-up, or erase it.",
    "query": "Print windows of a running worker.",
    "finals": "Print final windows as JSON, or keep them in a Parquet file.",
    "discover": "Find unknown words, round by round.",
    "status": "Show collections, partitions, lag and watermarks of a worker.",
    "simulate": "Send made-up reports to a collection, to try a set-up.",
    "devbroker": "Run the embedded development broker on its own.",
    "demo": "Run a broker, a worker, simulated devices and the page in one go.",
}
"""What each command does, in the order of use."""
_MODULES: Final = {
    "configuration": "init keys check spec",
    "files": "privatize estimate certify plan ledger",
    "processes": "worker gateway devbroker demo",
    "collections": "send close backup reset discover simulate",
    "answers": "query finals status",
}
"""Where each command is declared: the modules of `ldpstream.agents.cli.commands`."""


class UnbufferedOutput(io.BufferedWriter):
    """Standard output under PYTHONUNBUFFERED, which Python leaves to write once.

    A pipe takes a part of that where a signal, such as that of Ctrl-Z, comes in between; the rest
    would be lost without an error.
    """

    def write(self, data: Any, /) -> int:
        written = super().write(data)
        self.flush()
        return written


def find_command(name: str) -> click.Command:
    """Import the declaration of a command, without what the command needs once it runs."""
    module = next(module for module, names in _MODULES.items() if name in names.split())
    command = getattr(import_module(f"ldpstream.agents.cli.commands.{module}"), name)
    assert isinstance(command, click.Command)
    return command


class Commands(click.Group):
    """A group that imports a command's module only when the command is used."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """Return all names, in the order of use."""
        return list(COMMANDS)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command; None for an unknown name."""
        return find_command(cmd_name) if cmd_name in COMMANDS else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; for an unknown name, say which was probably meant."""
        if args[0] not in COMMANDS and (meant := get_close_matches(args[0], COMMANDS, n=1)):
            ctx.fail(f"No such command {args[0]!r} (did you mean {meant[0]}?)")
        return super().resolve_command(ctx, args)

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def main(self, *args: Any, **extra: Any) -> Never:
        """Run a command and exit: 0, 1 for a failed check, 2 for wrong use or input."""
        extra["standalone_mode"] = False
        # Python ends with a search for garbage among all objects, which are given up anyway.
        atexit.register(gc.freeze)
        # A closed one has nothing to read.
        sys.stdin = sys.stdin or io.TextIOWrapper(io.BytesIO())
        if sys.stdout is None:
            click.echo("cannot write to standard output: it is closed", err=True)
            sys.exit(REFUSED)
        if isinstance(sys.stdout, io.TextIOWrapper):
            if isinstance(sys.stdout.buffer, io.RawIOBase):
                encoding, raw = sys.stdout.encoding, sys.stdout.detach()
                sys.stdout = io.TextIOWrapper(UnbufferedOutput(raw), encoding, write_through=True)
            # A label that the terminal cannot print must not end a command.
            sys.stdout.reconfigure(errors="replace")
        try:
            code = super().main(*args, **{"prog_name": "ldpstream", **extra})
        except click.UsageError as error:
            code = _refuse_usage(error)
        except click.ClickException as error:
            click.echo(error.format_message(), err=True)
            code = error.exit_code
        except (click.Abort, KeyboardInterrupt):
            code = INTERRUPTED
        except OSError as error:
            code = _failed_io(error)
        sys.exit(code if isinstance(code, int) else 0)


def _refuse_usage(error: click.UsageError) -> int:
    command = error.ctx.command_path if error.ctx else "ldpstream"
    message = error.format_message()
    for number in ("integer", "float"):  # Click would say "a valid integer range".
        message = message.replace(f"valid {number} range", f"valid {number}")
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        click.echo(message, err=True)
    else:
        click.echo(f"{command}: {message.rstrip('.')} (see {command} --help)", err=True)
    return REFUSED


def _failed_io(error: OSError) -> int:
    """Say which file failed, and how.

    Where other files are written, their errors get their names. So an error of writing without a
    file name is about standard output.
    """
    if error.filename is not None or error.errno not in _OF_WRITING:
        used = "" if error.filename is None else f"cannot use {error.filename}: "
        click.echo(f"{used}{error.strerror or error}", err=True)
        return REFUSED
    # Python flushes standard output at exit, which would fail again.
    target = _output_name()
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if error.errno == errno.EPIPE:
        return FAILED  # the reader of our output went away: nothing to say
    click.echo(f"cannot write to {target}: {error.strerror or error}", err=True)
    return REFUSED


def _output_name() -> str:
    try:
        file = Path(f"/proc/self/fd/{sys.stdout.fileno()}").readlink()
    except OSError:
        return "standard output"
    return f"standard output, {file}" if file.is_absolute() else "standard output"


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="ldpstream %(version)s")
def main() -> None:
    """Local differential privacy for Kafka streams: exact statistics, honest bounds."""
