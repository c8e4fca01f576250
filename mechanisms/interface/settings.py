"""The keys of a collection that configure its mechanism."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.domains.blocks import Blocks
from ldpstream.mechanisms.policies.config import PolicySettings, read_shares, refuse_rounding
from ldpstream.mechanisms.policies.prior import NOTHING_KNOWN, KnownPrior

MECHANISM_KEYS: Final[Mapping[str, str]] = {
    "epsilon": "Budget of one report: a number above 0, or with groups one for each block or list "
    "of sensitive values. With metric mechanisms the budget of one index step, or of the width of "
    "one bin of an interval",
    "epsilon_outside": "With groups: the budget towards values outside of the own block or list, "
    "at least epsilon; a number, or one for each. Without it blocks are disclosed",
    "epsilon_rest": "With groups: the budget of values that are not sensitive, which else have "
    "none",
    "sensitive": "Values to protect, with mechanisms for high-low policies; with groups also lists "
    "of them, with a budget each",
    "share": "With groups: the share of users with a sensitive value for which the reports are "
    "chosen, 0 to 1",
    "policy": "The budget of every pair of values: a metric, blocks, a matrix or a file; or "
    "{ prior = [...] }: localized information privacy for values of known shares",
    "prior": "Known shares of the values, one each, for a Bayesian estimate beside the unbiased "
    "one; with lip the known share of the second value, or { levels = 64 }",
    "strategy": 'With matrix: the queries that get noise; a name, "best", or { file = "..." }',
    "workload": 'With matrix: the queries that "best" is chosen for; '
    'with tree: "ranges", "prefixes" or a list; "published": reports on nothing but the ranges, '
    "sets and linear queries of publish, with less error",
    "scales": 'With matrix: the noise of each query of the strategy; a list, or { file = "..." }',
    "channel": "With optimal: a channel file, as ldpstream plan writes it",
    "weights": "The weight of each report: { public = LARGEST }, or { private = LARGEST }",
}
"""The meaning of each key of a collection that belongs to its mechanism; each one reads some."""


@dataclass(frozen=True)
class Settings(PolicySettings):
    """The keys of a collection that a mechanism may read; it refuses those it does not know.

    `keys` holds those of `MECHANISM_KEYS`, and `blocks` are the domain's.
    """

    blocks: Blocks | None

    def merged(self, publish: object) -> "Settings":
        """Return the settings with which a mechanism reports atoms, if `workload` says so.

        `publish` is the collection's table of what it publishes.
        """
        if self.keys.get("workload") != "published":
            return self
        refuse_rounding(self.domain, self.path)
        if "policy" in self.keys:
            what = 'no policy with workload = "published", which needs one epsilon for all values'
            raise SpecError(f"{self.path}.policy", what)
        # Few collections report on atoms, and every device would load how.
        from ldpstream.mechanisms.domains.atoms import read_atoms

        atoms = read_atoms(self.domain, self.blocks, publish, self.path)
        blocks = None if self.blocks is None else atoms.merge_blocks(self.blocks)
        keys = {key: value for key, value in self.keys.items() if key != "workload"}
        return replace(self, domain=atoms, blocks=blocks, keys=keys)

    def split_prior(self) -> "tuple[Settings, KnownPrior]":
        """Return the settings of the mechanism alone, and what is known of its values' shares.

        That is the key `prior`, or `policy = { prior = ... }`, with which the mechanism has to keep
        localized information privacy.
        """
        keys, where = dict(self.keys), f"{self.path}.prior"
        policy = self.read_prior_policy()
        if policy is None and "prior" not in keys:
            return self, NOTHING_KNOWN
        if policy is not None:
            if "prior" in keys:
                raise SpecError(where, "no prior beside that of the policy")
            del keys["policy"]
            if "channel" in keys:
                del keys["epsilon"]
        for key in ("weights", "workload"):
            if key == "weights" in keys or keys.get(key) == "published":
                raise SpecError(
                    f"{self.path}.{key}", "none with a prior, which is of single values"
                )
        shares = None if policy is None else policy.prior
        if "prior" in keys:
            shares = read_shares(keys.pop("prior"), self.domain, self.base, where)
        return replace(self, keys=keys), KnownPrior(shares, policy)

    def only(self, mechanism: str, *names: str) -> None:
        """Refuse every key but these, and blocks unless `"blocks"` is among them."""
        if self.blocks is not None and "blocks" not in names:
            raise SpecError(f"{self.path}.domain.blocks", f"no blocks with {mechanism}")
        for key in self.keys:
            if key not in names:
                raise SpecError(f"{self.path}.{key}", f"no such key with {mechanism}")
