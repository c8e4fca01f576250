"""Finals in a PostgreSQL server: the same typed rows as in a file, however often they are stored.

Skipped where the server's programs are missing, unless LDPSTREAM_REQUIRE_ALL is 1.
"""

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import ldpstream as ldp
from ldpstream.agents.document.sinks import COLUMNS, SQL_TABLE
from tests import missing
from tests.ports import free_ports
from tests.processes import PATIENCE_SECONDS
from tests.stream.client.test_sinks import finals

__all__ = ["finals"]


def program(name: str) -> str:
    """Return the path of a program of the server, which Debian keeps off the PATH."""
    folders = sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin")), reverse=True)
    found = shutil.which(name, path=os.pathsep.join([*folders, os.environ["PATH"]]))
    if found is None:
        reason = "no PostgreSQL; on Debian: apt-get install postgresql"
        missing.skip(reason)
    return found


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Run a server with an empty database; root runs it as the user `postgres`."""
    initdb, postgres, port = program("initdb"), program("postgres"), free_ports(1)[0]
    user = pwd.getpwnam("postgres").pw_uid if os.getuid() == 0 else None
    # A folder outside pytest's, which another user cannot read.
    with tempfile.TemporaryDirectory(prefix="ldpstream-postgres-") as folder:
        if user is not None:
            os.chown(folder, user, -1)
        made = [initdb, "-D", f"{folder}/data", "-U", "ldp", "-A", "trust", "--no-sync"]
        subprocess.run(made, check=True, capture_output=True, user=user, cwd=folder)
        options = [f"-p{port}", "-h127.0.0.1", f"-k{folder}", "-cfsync=off"]
        with subprocess.Popen(
            [postgres, "-D", f"{folder}/data", *options],
            user=user,
            cwd=folder,
            stderr=subprocess.DEVNULL,
        ) as server:
            try:
                yield f"postgresql+pg8000://ldp@127.0.0.1:{port}/postgres"
            finally:
                server.terminate()


def stored(url: str) -> list[dict[str, Any]]:
    """Return all rows, by their key."""
    sql = pytest.importorskip("sqlalchemy")
    engine = sql.create_engine(url)
    try:
        with engine.connect() as connection:
            found = connection.execute(sql.text(f"select * from {SQL_TABLE}")).mappings()
            rows = [dict(row) for row in found]
    finally:
        engine.dispose()
    return sorted(rows, key=lambda row: tuple(row[name] for name in COLUMNS[:5]))


def test_a_replay_leaves_the_rows_of_a_file(
    finals: list[ldp.EstimateDocument], url: str, tmp_path: Path
) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            ldp.store_documents(finals[:3], url)
            break
        except OSError:  # The server is still starting.
            assert time.monotonic() < deadline
            time.sleep(0.2)
    ldp.store_documents(finals[2:], url)
    first = stored(url)
    ldp.store_documents(reversed(finals), url)
    ldp.store_documents([finals[1], finals[0], finals[1]], url)
    file = tmp_path / "finals.parquet"
    ldp.store_documents(finals, str(file))
    assert stored(url) == first == pq.read_table(file).to_pylist()
