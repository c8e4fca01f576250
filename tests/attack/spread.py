"""Whether a day's budget hears devices all day, or in its first hours alone."""

import json
from collections import Counter

from tests.attack.stand import Attack, Outcome, Stand

_COLLECTION = """mechanism = "randomized-response"
epsilon = 1.0
domain = { size = 4 }
minimum = 1
window = { size = "1h" }
spread = { reports = 4, horizon = "1d" }"""
_DAY = "".join(f"2026-11-22T{hour:02}:30:00Z,1\n" for hour in range(24)).encode()


async def newcomers_alone(stand: Stand) -> Outcome:
    """Ask devices for a report every hour, of which a day's budget pays for four."""
    file, hours = stand.configure({"trips": _COLLECTION}), Counter[int]()
    devices = 3 if stand.short else 20
    for number in range(devices):
        ledger = "--ledger", str(stand.folder / f"{number}.ledger")
        asked = "privatize", "trips", "-c", str(file), "--times", "--replay", *ledger
        ran = stand.run(*asked, stdin=_DAY)
        times = [json.loads(line)["time"] for line in ran.stdout.splitlines()]
        hours.update(int(time[11:13]) for time in times)
    early, all_of_them = sum(hours[hour] for hour in range(4)), sum(hours.values())
    figure = f"{all_of_them} reports of {devices} devices, {early} of them in hours 0 to 3 of 24"
    # Spread over the day, each report is in these hours with probability 1/6: all 12 (of 20
    # devices, 80) are with less than 1e-9.
    return Outcome(all_of_them == 4 * devices and early < all_of_them, figure)


ATTACKS = (
    Attack(
        "spread-newcomers",
        "a day's budget hears devices in all hours, not in the first ones alone",
        newcomers_alone,
    ),
)
