"""The tables that a run prints."""

from collections.abc import Sequence

from rich.table import Table

from benchmarks.engine.cost import Cost
from benchmarks.engine.latency import FLUSH_AND_PUBLISH, Latency
from benchmarks.engine.speed import WORKER, Plan
from benchmarks.engine.state import MIB, Used
from benchmarks.engine.tables import table
from benchmarks.engine.targets import Target
from benchmarks.engine.topic import PARTITIONS
from benchmarks.engine.workers import SHARED_PARTITIONS, Many, Together

DAY_SECONDS = 86_400
DEVICES = (1_000_000, 1_000_000_000)


def costs(found: Sequence[Cost], plan: Plan, broker: str) -> Table:
    """Return the table of speeds."""
    rows = (
        (cost.reader, f"{cost.reports_a_message:,}", f"{cost.of_a_core:,.0f}") for cost in found
    )
    title = (
        f"From topic to statistic, {PARTITIONS} partitions, {broker} broker, best of {plan.repeat}"
    )
    columns = ("reader", "reports a message", "reports/s of a core")
    return table(title, columns, rows)


def day(found: Sequence[Cost]) -> Table:
    """Return the table of cores that a worker needs for devices that report once a day."""
    rows = (
        (
            f"{cost.reports_a_message:,}",
            *(f"{devices / DAY_SECONDS / cost.of_a_core:.1g}" for devices in DEVICES),
        )
        for cost in found
        if cost.reader == WORKER
    )
    title = (
        "Cores of a worker for one report a device and day, devices / 86,400 s / (reports/s of a "
        "core)"
    )
    columns = ("reports a message", *(f"{devices:,} devices" for devices in DEVICES))
    return table(title, columns, rows)


def latencies(found: Sequence[Latency]) -> Table:
    """Return the table of latencies."""
    rows = (
        (one.what, f"{len(one.seconds):,}", *(f"{one.quantile(p):.3f}" for p in (0.5, 0.99, 1.0)))
        for one in found
    )
    columns = ("what", "n", "median s", "99% s", "longest s")
    return table(f"Seconds from acknowledged to published; {FLUSH_AND_PUBLISH}", columns, rows)


def states(found: Sequence[Used]) -> Table:
    """Return the table of changelog bytes and memory."""
    rows = (
        (
            used.case.what,
            f"{used.case.reports / 1e6:g}",
            f"{used.case.windows:,}",
            f"{used.case.values:,}",
            f"{used.taken.cpu_seconds / used.case.reports * 1e6:.3f}",
            f"{used.taken.before_bytes / MIB:.0f}",
            f"{used.taken.peak_bytes / MIB:.0f}",
            f"{used.taken.changelog_bytes / used.case.reports:.4f}",
        )
        for used in found
    )
    columns = ("varied", "M reports", "windows", "values", "CPU us a report", "start MiB")
    more = ("peak MiB", "changelog B a report")
    title = "A worker's memory and changelog; frames of 1,000 reports, one partition"
    return table(title, columns + more, rows)


def recovered(rows: Sequence[Sequence[str]], values: int) -> Table:
    """Return the table of recovery."""
    columns = ("open panes", "records", "MB", "read s", "load s", "ready s", "peak MiB")
    title = f"Recovery from the changelog, {values:,} values, one partition"
    return table(title, (*columns, "added MiB", "B a pane"), rows)


def shared(found: Sequence[Together]) -> Table:
    """Return the table of one worker and two."""
    rows = (
        (
            f"{one.workers}",
            f"{one.reports:,}",
            f"{one.seconds:.1f}",
            f"{one.reports / one.seconds:,.0f}",
            f"{found[0].seconds / one.seconds:.2f}",
            f"{one.cpu_seconds / one.reports * 1e9:,.0f}",
        )
        for one in found
    )
    columns = ("workers", "reports", "seconds", "reports/s", "of one", "CPU ns a report")
    return table(
        f"One worker and two, {SHARED_PARTITIONS} partitions, single reports, broker on both cores",
        columns,
        rows,
    )


def many(found: Sequence[Many]) -> Table:
    """Return the table of a worker with many partitions."""
    rows = (
        (
            f"{one.partitions:,}",
            f"{one.ready_seconds:.1f}",
            f"{one.ready_cpu_seconds:.1f}",
            f"{one.idle_cores:.3f}",
            f"{one.busy_cores:.3f}",
            f"{one.sent_a_second:,.0f}",
            f"{one.counted_a_second:,.0f}",
            f"{one.behind_seconds:.1f}",
            f"{one.peak_bytes / MIB:.0f}",
        )
        for one in found
    )
    columns = ("partitions", "ready s", "CPU s until ready", "cores, idle", "cores, busy")
    more = ("sent/s", "counted/s", "behind s", "peak MiB")
    title = "A worker that owns many partitions; busy: one single report a partition and second"
    return table(title, columns + more, rows)


def targets(judged: Sequence[Target]) -> Table:
    """Return what was reached of what."""
    rows = (
        (
            one.what,
            "not measured" if one.reached is None else f"{one.reached:,.2f}",
            f"{one.least:,.2f}",
            "yes" if one.met else "MISSED",
        )
        for one in judged
    )
    columns = ("what", "reached", "asked for", "met")
    return table("What was asked for, within this run", columns, rows)
