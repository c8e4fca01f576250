"""Slips of honest users that nobody would notice until the numbers are wrong."""

import json
import subprocess
from pathlib import Path

from tests.attack.stand import COLLECTION, Attack, Outcome, Stand


async def epoch_seconds(stand: Stand) -> Outcome:
    """Send values whose times are seconds since 1970, where milliseconds are meant."""
    file = stand.configure({"trips": COLLECTION})
    ran = stand.run("send", "trips", "--times", "-c", str(file), stdin=b"1790000000,3\n" * 10)
    said = ran.stderr.decode().strip() or ran.stdout.decode().strip()
    return Outcome(ran.returncode == 2, f"exit {ran.returncode}: {said.splitlines()[-1][:80]}")


async def reports_of_1970(stand: Stand) -> Outcome:
    """Send report lines that are dated in 1970, as from times in seconds."""
    file = stand.configure({"trips": COLLECTION})
    wrote = stand.run("privatize", "trips", "-c", str(file), stdin=b"3\n")
    line = json.loads(wrote.stdout) | {"time": "1970-01-21T17:13:20Z"}
    ran = stand.run("send", "trips", "--reports", "-c", str(file), stdin=json.dumps(line).encode())
    return Outcome(ran.returncode == 2, _said(ran))


async def header_in_domain(stand: Stand) -> Outcome:
    """Give a domain whose file begins with a header."""
    (stand.folder / "places.csv").write_text("place,district\na,x\nb,x\nc,y\nd,y\n")
    domain = 'domain = { file = "places.csv" }'
    file = stand.configure({"trips": COLLECTION.replace("domain = { size = 12 }", domain)})
    ran = stand.run("certify", "trips", "-c", str(file))
    return Outcome(ran.returncode == 2 and b"header" in ran.stderr, _said(ran))


async def nominal_budget(stand: Stand) -> Outcome:
    """Ask for a budget of 100, with which a report gives its value away."""
    file = stand.configure({"trips": COLLECTION.replace("epsilon = 1.0", "epsilon = 100.0")})
    runs = [stand.run("certify", "-c", str(file)), stand.run("check", "-c", str(file))]
    warned = [ran for ran in runs if b"100" in ran.stderr and b"nominal" in ran.stderr]
    passed = [ran for ran in runs if ran.returncode == 0]
    figure = f"{len(warned)} of 2 commands warn, {len(passed)} pass"
    return Outcome(len(warned) == len(passed) == 2, figure)


async def missing_choice(stand: Stand) -> Outcome:
    """Leave out the domain, then the mechanism."""
    held, said = True, ""
    for line, choice in (
        ("domain = { size = 12 }", b"interval"),
        ('mechanism = "block-hadamard"', b"l1-geometric"),
    ):
        file = stand.configure({"trips": COLLECTION.replace(line, "")})
        ran = stand.run("certify", "-c", str(file))
        held &= ran.returncode == 2 and choice in ran.stderr
        said = _said(ran)
    return Outcome(held, said.split(": ", 1)[-1])


async def full_disk(stand: Stand) -> Outcome:
    """Write reports to a full disk."""
    file = stand.configure({"trips": COLLECTION})
    full = Path("/dev/full")
    ran = stand.run("privatize", "trips", "-c", str(file), stdin=b"3\n" * 10, stdout=full)
    return Outcome(ran.returncode == 2 and b"/dev/full" in ran.stderr, _said(ran))


async def one_of_eight(stand: Stand) -> Outcome:
    """Make the same mistake in eight collections."""
    wrong = COLLECTION.replace('size = "1m"', 'size = "1m", hop = "2m"')
    file = stand.configure({f"c{number}": wrong for number in range(8)})
    ran = stand.run("check", "-c", str(file))
    named = sum(f"collection.c{number}.".encode() in ran.stderr for number in range(8))
    return Outcome(ran.returncode == 2 and named == 8, f"{named} of 8 named")


async def clashing_default(stand: Stand) -> Outcome:
    """Ask for windows of 30 days, longer than the default retention."""
    file = stand.configure({"trips": COLLECTION.replace('size = "1m"', 'size = "30d"')})
    ran = stand.run("certify", "-c", str(file))
    held = ran.returncode == 0 or b"default" in ran.stderr
    return Outcome(held, _said(ran).split(".window.")[-1])


def _said(ran: "subprocess.CompletedProcess[bytes]") -> str:
    lines = (ran.stderr or ran.stdout or b"").decode().strip().splitlines()
    said = lines[-1].split(".toml: ")[-1] if lines else "nothing said"
    return f"exit {ran.returncode}: {said[:80]}"


ATTACKS = (
    Attack(
        "slip-epoch-seconds",
        "times in seconds are refused, not taken for January 1970",
        epoch_seconds,
    ),
    Attack(
        "slip-reports-of-1970",
        "report lines dated 1970 by seconds are not sent",
        reports_of_1970,
    ),
    Attack("slip-header", "a domain's header line is not a value", header_in_domain),
    Attack("slip-nominal", "a budget that hides nothing is warned of", nominal_budget),
    Attack("slip-choice", "a missing choice lists the choices", missing_choice),
    Attack("slip-full-disk", "a full disk is named", full_disk),
    Attack("slip-one-of-eight", "every wrong collection is named", one_of_eight),
    Attack("slip-default", "a default that clashes with a setting is called one", clashing_default),
)
