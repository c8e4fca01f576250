"""What a device has spent, in words: how much, for which collections, and against whom."""

from collections import Counter
from fractions import Fraction

from ldpstream.agents.privacy.factors import factor_text, round_up
from ldpstream.mechanisms.ledger.spent import Spent


def spent_sentences(spent: Spent, stretch: str) -> tuple[str, ...]:
    """Return sentences about what all reports in a time, such as "the past year", have lost."""
    if not spent.windows:
        return (f"In {stretch} this device has reported nothing.",)
    reports: Counter[str] = Counter()
    for one in spent.windows:
        reports[one.collection] += one.reports
    totals: dict[str, Fraction] = {}
    for one in spent.windows:
        totals[one.collection] = totals.get(one.collection, Fraction(0)) + one.loss
    of_each = ", ".join(
        f"{number:,} to {name} ({round_up(totals[name], 2)})"
        for name, number in sorted(reports.items())
    )
    number = reports.total()
    return (
        (
            f"In {stretch} this device has given {number:,} report{'s' * (number > 1)}: {of_each}. "
            f"They lose at most {round_up(spent.total, 2)} together: all of them are at most "
            f"{factor_text(spent.total)} times likelier for one history of values than for another "
            "that the policies protect it from."
        ),
        (
            "That is against whoever has the single reports and knows that they are this device's: "
            "the operators of broker, gateway and workers, and whoever they show the topic to. "
            "Whoever sees only published estimates learns no more than that."
        ),
    )
