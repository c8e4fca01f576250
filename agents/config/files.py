"""Reading a configuration file as TOML."""

import re
import tomllib
from pathlib import Path
from typing import Any, Final

from ldpstream.agents.config.errors import ConfigError

_TOML_POSITION: Final = re.compile(r"(.*) \(at (?:line (\d+), column \d+|(end of document))\)")


def read_tables(file: Path, shown: str) -> dict[str, Any]:
    """Return the tables of a TOML file, called `shown` in messages.

    Raises:
        ConfigError: if it cannot be read, naming file and line.
    """
    try:
        return tomllib.loads(file.read_text("utf-8-sig"))
    except OSError as error:
        raise ConfigError("", f"cannot read it: {error.strerror}", file=shown) from error
    except UnicodeDecodeError as error:
        raise ConfigError("", "expected UTF-8", file=shown) from error
    except tomllib.TOMLDecodeError as error:
        raise _syntax_error(str(error), shown) from error


def _syntax_error(message: str, file: str) -> ConfigError:
    match = _TOML_POSITION.fullmatch(message)
    if match is None:
        return ConfigError("", f"expected TOML: {message}", file=file)
    where = f"line {match[2]}" if match[2] else "at its end"
    return ConfigError(where, f"expected TOML: {match[1]}", file=file)
