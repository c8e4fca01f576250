"""Draw the figures of the pages: `python docs/figures/draw.py` writes an SVG for each.

What can be computed is computed by the product. Colours follow the reader's choice of light or
dark, on a ground of the figure's own, so that it can be read on any page.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from picture import Picture

import ldpstream as ldp

FOLDER: Final = Path(__file__).parent


def collection(name: str, **keys: Any) -> Any:
    """Return a collection of four ways to travel, epsilon 1."""
    domain = {"values": ["bus", "train", "walk", "car"]}
    return ldp.define_collection(
        name, mechanism="randomized-response", epsilon=1.0, domain=domain, partitions=1, **keys
    )


def data_flow() -> Picture:
    """Draw what leaves a device, and where it goes."""
    picture = Picture(880, 290, "A value becomes a report on the device; only the report leaves")
    for x, width, name in ((20, 300, "device"), (372, 136, "Kafka"), (548, 162, "worker")):
        picture.rectangle(x, 16, width, 256, "zone")
        picture.text(x + 12, 38, name, "bold")
    picture.box(36, 60, 90, 56, "value", "bus")
    picture.box(188, 60, 116, 56, "mechanism", "draws at random")
    picture.box(188, 184, 116, 56, "report", "walk")
    picture.box(36, 184, 90, 56, "ledger", "of epsilon")
    picture.path([(126, 88), (186, 88)], "arrow")
    picture.path([(246, 116), (246, 182)], "arrow")
    picture.path([(126, 212), (186, 212)], "guide")
    picture.path([(346, 16), (346, 272)], "warn")
    picture.path([(304, 212), (386, 212)], "arrow")
    picture.box(388, 184, 104, 56, "topic", "of reports")
    picture.path([(492, 212), (562, 212)], "arrow")
    picture.box(564, 184, 130, 56, "counts", "exact integers")
    picture.path([(629, 184), (629, 118)], "arrow")
    picture.box(564, 60, 130, 56, "estimates", "with bounds")
    picture.path([(564, 88), (494, 88)], "arrow")
    picture.box(388, 60, 104, 56, "topic", "of estimates")
    picture.path([(694, 88), (744, 88)], "arrow")
    picture.box(746, 60, 118, 56, "readers", "page, API, topic")
    picture.text(734, 206, "The value never", "soft")
    picture.text(734, 224, "crosses the red line.", "soft")
    return picture


SEEN: Final = {
    "the device": "####..",
    "the network, with TLS": "..##..",
    "a gateway": ".###..",
    "a Kafka broker": ".#####",
    "readers of its topics": ".#--##",
    "workers": ".#--##",
    "readers of estimates": "....##",
}
"""Who sees the columns of `who_sees_what`: `#` all of it, `-` a part, `.` nothing."""
COLUMNS: Final = ("the value", "its report", "which device", "the moment", "how many", "estimates")


def who_sees_what() -> Picture:
    """Draw the table `SEEN`."""
    picture = Picture(880, 390, "Who sees a value, its report, the device, the time, and estimates")
    for number, name in enumerate(COLUMNS):
        picture.text(300 + 105 * number, 42, name, "bold", "middle")
    for row, (who, cells) in enumerate(SEEN.items()):
        y = 84 + 40 * row
        picture.path([(20, y - 24), (860, y - 24)], "guide")
        picture.text(24, y, who)
        for number, cell in enumerate(cells):
            x = 300 + 105 * number
            picture.dot(x, y - 5, "filled" if cell == "#" else "empty", 8)
            if cell == "-":
                picture.parts.append(f'<path d="M{x} {y - 13}a8 8 0 0 0 0 16z" class="filled"/>')
    for x, kind, said in ((24, "filled", "sees it"), (290, "empty", "does not")):
        picture.dot(x + 8, 364, kind, 8)
        picture.text(x + 24, 369, said, "soft")
    picture.dot(148, 364, "empty", 8)
    picture.parts.append('<path d="M148 356a8 8 0 0 0 0 16z" class="filled"/>')
    picture.text(164, 369, "sees a part of it", "soft")
    return picture


ARRIVALS: Final = (12, 31, 24, 52, 43, 63, 57, 66, 48, 74)
"""Event times of reports in the order of their arrival, in minutes after ten."""


def windows_and_lateness() -> Picture:
    """Draw what a driver decides of ARRIVALS, window 10:00 to 11:00, grace 5 minutes."""
    window = {"size": "1h", "grace": "5m", "future": "5m", "idle": "off"}
    driver = ldp.Driver(collection("trips", window=window, minimum=0), start="2026-11-21T10:00:00Z")
    picture = Picture(880, 400, "Reports by event time and arrival; the window closes after grace")

    def place(number: float, minute: float) -> tuple[float, float]:
        return 130 + 66 * number, 350 - 4 * minute

    picture.rectangle(98, place(0, 60)[1], 690, 240, "box")
    picture.text(108, 130, "window 10:00 to 11:00", "soft")
    for minute in (0, 20, 40, 60, 65):
        y = place(0, minute)[1]
        picture.path([(98, y), (788, y)], "guide")
        name = "+ grace" if minute == 65 else f"{10 + minute // 60}:{minute % 60:02}"
        picture.text(90, y + (0 if minute == 65 else 5), name, "soft", "end")
    steps: list[tuple[float, float]] = []
    highest, closed = ARRIVALS[0], None
    for number, minute in enumerate(ARRIVALS):
        before, earlier = driver.late, highest
        highest = max(highest, minute)
        driver.advance(max(0, (highest + 1) * 60_000 - (driver.now_ms - 1_795_255_200_000)))
        driver.send(["bus"], times=[f"2026-11-21T{10 + minute // 60}:{minute % 60:02}:00Z"])
        steps += [place(number, earlier), place(number, highest)]
        x, y = place(number, minute)
        late = driver.late > before
        picture.dot(x, y, "bad" if late else "filled")
        if late:
            picture.text(x + 12, y + 5, "late: not counted", "soft")
        if closed is None and highest >= 65:
            closed = x
    picture.path([*steps, place(len(ARRIVALS) - 0.4, highest)], "main")
    assert closed is not None
    picture.path([(closed, 30), (closed, 350)], "warn")
    picture.text(closed + 8, 344, "the window closes", "soft")
    picture.text(place(5, 57)[0] + 78, place(6, 57)[1] + 5, "in time, by grace", "soft")
    picture.text(112, 40, "line: the watermark, the latest event time so far", "soft")
    picture.text(443, 384, "order of arrival", "soft", "middle")
    picture.text(24, 18, "event time", "soft")
    return picture


SEED: Final = 6
"""A draw in which a share is below 0; the page says how often bars miss the truth."""


def estimate_with_bounds() -> Picture:
    """Draw estimates of 1,000 reports, 600 of bus and 400 of car, and their bounds."""
    driver = ldp.Driver(collection("modes"), start="2026-11-21T10:00:00Z", seed=SEED)
    driver.send(["bus"] * 600 + ["car"] * 400)
    driver.advance("65m")
    (final,) = driver.finals
    entries = {str(entry.value): entry for entry in final.distribution}
    picture = Picture(880, 300, "Estimated shares with their bounds, and the true shares")

    def at(share: float) -> float:
        return 180 + 760 * (share + 0.05)

    for percent in range(0, 81, 20):
        x = at(percent / 100)
        picture.path([(x, 40), (x, 236)], "guide")
        picture.text(x, 256, f"{percent}%", "soft", "middle")
    for row, (name, true) in enumerate({"bus": 0.6, "car": 0.4, "train": 0.0, "walk": 0.0}.items()):
        y, entry = 62 + 48 * row, entries[name]
        picture.text(24, y + 5, f"{name}  {entry.share:.1%}", "bold")
        picture.path([(at(entry.low), y), (at(entry.high), y)], "main")
        for end in (entry.low, entry.high):
            picture.path([(at(end), y - 8), (at(end), y + 8)], "main")
        picture.dot(at(entry.share), y)
        picture.path([(at(true), y - 14), (at(true), y + 14)], "warn")
    picture.dot(32, 280)
    picture.text(46, 285, "the estimate, unbiased", "soft")
    picture.path([(206, 280), (236, 280)], "main")
    picture.text(244, 285, "from low to high: it holds the truth 95 times in 100", "soft")
    picture.path([(610, 270), (610, 290)], "warn")
    picture.text(620, 285, "the truth, which nobody else knows", "soft")
    return picture


def first_head_wins() -> Picture:
    """Draw two owners of a partition, one of them too late."""
    picture = Picture(880, 300, "Of two commit records with one number the first in the log counts")
    picture.text(24, 60, "worker A", "bold")
    picture.text(24, 120, "worker B", "bold")
    picture.text(24, 215, "changelog", "bold")
    picture.path([(120, 55), (250, 55)], "main")
    picture.path([(250, 55), (560, 55)], "guide")
    picture.text(330, 46, "stopped for a minute", "soft")
    picture.path([(560, 55), (640, 55)], "warn")
    picture.text(650, 60, "lost: forgets all, loads again", "soft")
    picture.path([(330, 115), (840, 115)], "main")
    picture.text(340, 138, "takes the partition over, loads head 7", "soft")
    heads = (
        (130, "head 7", "next = 100", 55, True),
        (310, "head 8", "next = 150", 115, True),
        (490, "head 8", "next = 140", 55, False),
        (670, "head 9", "next = 180", 115, True),
    )
    for x, name, next_offset, y, wins in heads:
        picture.box(x, 180, 140, 60, name, next_offset)
        middle = min(x + 110, 250) if x < 200 else x + (110 if y == 55 else 80)
        picture.path([(middle, y), (middle, 178)], "arrow")
        if wins:
            picture.text(x + 70, 262, "first of its number: wins", "soft", "middle")
        else:
            picture.path([(x, 180), (x + 140, 240)], "warn")
            picture.text(x + 70, 262, "second: void", "soft", "middle")
    picture.text(130, 286, "Every report before the last winner's next counts, once.", "soft")
    return picture


SENT: Final = (150, 150, 500, 50, 50)


def shown_under_minimum(sent: Sequence[int] = SENT) -> list[tuple[int, int]]:
    """Return counted and shown reports after each group that is sent, and of the final."""
    driver = ldp.Driver(collection("modes", minimum=100), start="2026-11-21T10:00:00Z")
    found, counted = [], 0
    for number in sent:
        driver.send(["bus"] * number)
        driver.advance("30s")
        counted += number
        document = driver.estimate()
        found.append((counted, 0 if document.withheld else document.n))
    driver.advance("65m")
    return [*found, (counted, driver.finals[0].n)]


def minimum() -> Picture:
    """Draw what `shown_under_minimum` finds."""
    picture = Picture(880, 330, "Reports that an open window has counted, and those that it shows")
    found = shown_under_minimum()
    names = [*(f"{number} more" for number in SENT), "final"]
    for number, ((counted, shown), name) in enumerate(zip(found, names, strict=True)):
        x = 60 + 134 * number
        for left, n, kind in ((x, counted, "box"), (x + 46, shown, "filled")):
            picture.rectangle(left, 270 - n / 4.2, 42, n / 4.2, kind)
            picture.text(left + 21, 262 - n / 4.2, str(n), "soft", "middle")
        picture.text(x + 44, 290, name, "", "middle")
    for x, kind, said in ((60, "box", "counted"), (160, "filled", "shown")):
        picture.rectangle(x, 302, 16, 16, kind)
        picture.text(x + 24, 315, said, "soft")
    return picture


PICTURES: Final[dict[str, Callable[[], Picture]]] = {
    "data-flow": data_flow,
    "who-sees-what": who_sees_what,
    "windows-and-lateness": windows_and_lateness,
    "estimate-with-bounds": estimate_with_bounds,
    "first-head-wins": first_head_wins,
    "minimum": minimum,
}

if __name__ == "__main__":
    for name, draw in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(draw().svg(), "utf-8")
