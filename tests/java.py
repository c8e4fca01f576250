"""How tests run Java: what starts fast matters more than speed, for brokers share the machine."""

import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

KAFKA: Final = Path(__file__).resolve().parent.parent / "docker" / "kafka"
CLASSES: Final = KAFKA / "jars" / "classes.jsa"
"""What Java has loaded for a broker, as it lies in memory."""
_PATIENCE_SECONDS: Final = 120.0


def java(heap: str) -> list[str]:
    """Return how a command of Kafka's jars begins."""
    options = [heap, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dlog4j2.level=ERROR"]
    kept = [f"-XX:SharedArchiveFile={CLASSES}"] if CLASSES.exists() else []
    # What is kept is of these jars in this order.
    jars = sorted(str(jar) for jar in (KAFKA / "jars").glob("*.jar"))
    return ["java", *options, *kept, "-cp", ":".join(jars)]


def keep_classes(properties: Path, serves: Callable[[], bool]) -> None:
    """Run a broker until it serves, and have Java keep all classes that it has loaded.

    A start then takes half the time of a core. Another Java leaves them alone and reads the jars,
    and so does this one if they cannot be kept.
    """
    archive = CLASSES.with_suffix(".new")
    begin, *more = [*java("-Xmx512m"), "kafka.Kafka", str(properties)]
    with subprocess.Popen(
        [begin, f"-XX:ArchiveClassesAtExit={archive}", *more],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as running:
        try:
            deadline = time.monotonic() + _PATIENCE_SECONDS
            while running.poll() is None and not serves() and time.monotonic() < deadline:
                time.sleep(0.05)
            running.terminate()
            with suppress(subprocess.TimeoutExpired):
                running.wait(timeout=_PATIENCE_SECONDS)
        finally:
            running.kill()
    if archive.exists():
        archive.rename(CLASSES)
