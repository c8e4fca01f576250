"""The documentation's blocks of code: where they stand, what they print, and a place to run them.

A block ` ```text ` straight after a block of commands is what these print. `...` stands for
anything; after ` ```text numbers ` every number stands for any number. White space is ignored, so
that lines may be broken for the reader. Any other block of text, in ` ```text ` or without a
language, stands alone: what a program says or writes, or a picture.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Final

from tests import forked
from tests.forked import MAIN

ROOT: Final = Path(__file__).resolve().parents[1]
CODE: Final = ("sh", "python", "toml", "js", "yaml", "pycon", "diff")
_PART: Final = re.compile(
    r"^(?:#+ +(?P<heading>.*?) *| *```(?P<info>.*)\n(?P<text>(?:.*\n)*?) *```) *$", re.MULTILINE
)
_NUMBER: Final = re.compile(r"-?[0-9][0-9,]*(?:\.[0-9]+)?(?:e-?[0-9]+)?")
_RULE: Final = re.compile(r"[\u2501\u2500]+")
# Whether these are printed depends on the noise that was drawn.
_CHANCE: Final = re.compile(
    r" ?low is # for # of # values: nothing shows that anybody has them"
    r"|, # shares? outside of bounds"
)


@dataclass(frozen=True)
class Block:
    """A block of code, the heading it stands under, and what it prints if that is shown.

    A block of text that stands alone is its own output.
    """

    page: str
    heading: str
    language: str
    code: str
    output: str = ""
    numbers: bool = False

    @property
    def place(self) -> str:
        return f"{self.page}#{self.heading}"


def pages() -> list[str]:
    """Return the documentation's pages, by their paths below the root."""
    clients = (ROOT / "clients").glob("*/README.md")
    found = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *clients]
    return sorted(str(page.relative_to(ROOT)) for page in found)


def blocks(page: str) -> list[Block]:
    """Return a page's blocks of code in their order."""
    found: list[Block] = []
    text, heading, end = (ROOT / page).read_text("utf-8"), "", -1
    for part in _PART.finditer(text):
        if part["heading"] is not None:
            heading = part["heading"]
            continue
        language, _, rest = part["info"].partition(" ")
        code, numbers = dedent(part["text"]), rest == "numbers"
        if language in CODE:
            found.append(Block(page, heading, language, code))
        elif language == "text" and found and not text[end : part.start()].strip():
            last = found.pop()
            found.append(Block(page, last.heading, last.language, last.code, code, numbers))
        else:
            assert language in ("", "text"), f"{page}: {language} is not in CODE"
            found.append(Block(page, heading, "text", code, code, numbers))
        end = part.end()
    return found


def shown_alone(page: str, heading: str) -> Block:
    """Return the one block of text that stands alone below a heading."""
    found = [one for one in blocks(page) if (one.heading, one.language) == (heading, "text")]
    (block,) = found
    return block


def agrees(said: str, block: Block) -> bool:
    """Whether a command printed what its page shows."""
    expected, given = (" ".join(text.split()) for text in (block.output, said))
    if block.numbers:
        # The rules of a table grow with its numbers.
        expected, given = (
            _CHANCE.sub("", _RULE.sub("-", _NUMBER.sub("#", text))) for text in (expected, given)
        )
    pattern = ".*".join(re.escape(part.strip()) for part in expected.split("..."))
    return re.fullmatch(pattern, given) is not None


def wait_for_window(size_seconds: int, *, left_seconds: int) -> None:
    """Wait for the next window of wall time if less than this is left of the present one.

    A page shows what a reader sees within one window.
    """
    left = size_seconds - time.time() % size_seconds
    if left < left_seconds:
        time.sleep(left)


@dataclass(frozen=True)
class Place:
    """A folder where `ldpstream` and `faust` are commands, and addresses in place of a page's."""

    folder: Path
    addresses: dict[str, str]

    @classmethod
    def made(cls, folder: Path, addresses: dict[str, str], *, own_code: bool = False) -> "Place":
        """Make the commands in a folder; with `own_code` they run the code on `PYTHONPATH`."""
        (folder / "bin").mkdir()
        for name, script in (
            ("ldpstream", _script("-c", MAIN) if own_code else forked.script()),
            ("faust", _script("-m", "faust")),
            ("python", _script()),
        ):
            (folder / "bin" / name).write_text(script)
            (folder / "bin" / name).chmod(0o755)
        return cls(folder, addresses)

    def run(self, *command: str) -> str:
        """Run a command, which has to succeed, and return what it printed."""
        result = subprocess.run(
            command, cwd=self.folder, env=self._environment, capture_output=True, text=True
        )
        assert result.returncode == 0, result.stdout + result.stderr
        assert "Traceback" not in result.stderr
        return result.stdout

    def shell(self, code: str) -> str:
        return self.run("sh", "-eu", "-c", self.here(code))

    @contextmanager
    def running(self, *command: str, ours: bool = True) -> Iterator["subprocess.Popen[bytes]"]:
        """Run for the length of the block; if it is `ours`, Ctrl-C has to end it with exit code 0.

        Python's own server of files has been seen to miss an interrupt.
        """
        process = subprocess.Popen(
            command, cwd=self.folder, env=self._environment, stdout=subprocess.PIPE
        )
        try:
            yield process
            if ours:
                process.send_signal(signal.SIGINT)
                assert process.wait(timeout=120) == 0
        finally:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()

    def here(self, code: str) -> str:
        """Return code with this place's addresses instead of the page's."""
        for theirs, ours in self.addresses.items():
            code = code.replace(theirs, ours)
        return code

    def exchange(self, name: str) -> None:
        """Put this place's addresses into a file."""
        file = self.folder / name
        file.write_text(self.here(file.read_text()))

    @property
    def _environment(self) -> dict[str, str]:
        return {**os.environ, "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}


def _script(*arguments: str) -> str:
    return f'#!/bin/sh\nexec {shlex.join([sys.executable, *arguments])} "$@"\n'
