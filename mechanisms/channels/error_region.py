"""What a report reveals: the errors of tests between two values ([CA] Theorem 1).

A test decides from a report between x and x'. `P_FA` is the probability that it says x if the value
is x', `P_MD` that it says x' if the value is x. Under a policy E every test has
`P_FA + e^E[x',x] P_MD >= 1` and `e^E[x,x'] P_FA + P_MD >= 1`. Conversely, a channel keeps the
policy at that pair if all its tests do.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from ldpstream.mechanisms.channels.channel import Channel
from ldpstream.mechanisms.exact.dyadic import exp_floor
from ldpstream.mechanisms.policies.policy import Policy

Errors = tuple[Fraction, Fraction]
"""The two errors `(P_FA, P_MD)` of a test."""


@dataclass(frozen=True)
class ErrorRegion:
    """The errors that tests of x against x' can have under a policy.

    `forward` is `E[x, x']` and `backward` is `E[x', x]`; None is infinity. With a test's errors the
    region holds those of the opposite test, so that it is symmetric about (1/2, 1/2).
    """

    forward: Fraction | None
    backward: Fraction | None

    @classmethod
    def of(cls, policy: Policy, value: int, other: int) -> "ErrorRegion":
        """Return the region of a pair of values of a policy."""
        return cls(policy.entry(value, other), policy.entry(other, value))

    def corner(self) -> tuple[float, float]:
        """Return the vertex `(P_FA, P_MD)` at which both bounds are tight.

        With a = forward and b = backward, `P_FA = (e^b - 1)/(e^(a+b) - 1)` and
        `P_MD = (e^a - 1)/(e^(a+b) - 1)`. (The appendix of [CA] prints the first formula twice.) For
        a = b = 0 both bounds are the same line, and this is its midpoint (1/2, 1/2).

        >>> ErrorRegion(None, Fraction(0)).corner(), ErrorRegion(None, None).corner()
        ((0.0, 1.0), (0.0, 0.0))
        """
        a = math.inf if self.forward is None else float(self.forward)
        b = math.inf if self.backward is None else float(self.backward)
        if a == b == 0:
            return 0.5, 0.5
        whole = -math.expm1(-(a + b))
        return (
            math.exp(-a) * -math.expm1(-b) / whole,
            math.exp(-b) * -math.expm1(-a) / whole,
        )

    def contains(self, errors: Errors) -> bool:
        """Return whether a test may have these errors, decided exactly (`dyadic.exp_floor`)."""
        false_alarm, missed = errors
        return all(
            _bounded(first, second, allowed)
            for alarm, miss in ((false_alarm, missed), (1 - false_alarm, 1 - missed))
            for first, second, allowed in (
                (1 - miss, alarm, self.forward),
                (1 - alarm, miss, self.backward),
            )
        )

    def first_outside(self, boundary: Iterable[Errors]) -> Errors | None:
        """Return the first of these errors that lies outside the region, or None."""
        return next((errors for errors in boundary if not self.contains(errors)), None)


def _bounded(first: Fraction, second: Fraction, allowed: Fraction | None) -> bool:
    return allowed is None or first <= exp_floor(allowed) * second


def channel_boundary(channel: Channel, value: int, other: int) -> tuple[Errors, ...]:
    """Return the errors of the best tests between two values of a channel, exactly.

    These are the vertices `(P_FA, P_MD)`, from (0, 1) to (1, 0), of the lower boundary of the
    errors of all tests. Each belongs to a test that says `value` if the ratio of its probability to
    the other's reaches a threshold (Neyman and Pearson). A channel keeps a policy at a pair if and
    only if the policy's region holds them all.

    >>> warner = Channel(({0: Fraction(3, 4), 1: Fraction(1, 4)},
    ...                   {0: Fraction(1, 4), 1: Fraction(3, 4)}), 2)
    >>> [(str(alarm), str(missed)) for alarm, missed in channel_boundary(warner, 0, 1)]
    [('0', '1'), ('1/4', '1/4'), ('1', '0')]
    """
    above, below = channel.rows[value], channel.rows[other]
    steps: dict[Fraction | None, Errors] = {}
    for output in {**above, **below}:
        up, down = above.get(output, Fraction(0)), below.get(output, Fraction(0))
        ratio = up / down if down else None
        alarm, hit = steps.get(ratio, (Fraction(0), Fraction(0)))
        steps[ratio] = alarm + down, hit + up
    false_alarm, missed = Fraction(0), Fraction(1)
    vertices = [(false_alarm, missed)]
    never = steps.pop(None, None)
    ranked = [steps[ratio] for ratio in sorted(r for r in steps if r is not None)[::-1]]
    for alarm, hit in ranked if never is None else [never, *ranked]:
        false_alarm, missed = false_alarm + alarm, missed - hit
        vertices.append((false_alarm, missed))
    return tuple(vertices)
