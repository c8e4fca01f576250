"""Slips of honest users that nobody would notice until the numbers are wrong."""

from tests.attack.stand import Attack, Outcome, Stand

_COLLECTION = """mechanism = "block-hadamard"
epsilon = 1.0
domain = { size = 12 }
partitions = 1
precision = "1s"
minimum = 1
window = { size = "1m" }"""


async def epoch_seconds(stand: Stand) -> Outcome:
    """Send values whose times are seconds since 1970, where milliseconds are meant."""
    file = stand.configure({"trips": _COLLECTION})
    ran = stand.run("send", "trips", "--times", "-c", str(file), stdin=b"1790000000,3\n" * 10)
    said = ran.stderr.decode().strip() or ran.stdout.decode().strip()
    return Outcome(ran.returncode == 2, f"exit {ran.returncode}: {said.splitlines()[-1][:80]}")


ATTACKS = (
    Attack(
        "slip-epoch-seconds",
        "times in seconds are refused, not taken for January 1970",
        epoch_seconds,
    ),
)
