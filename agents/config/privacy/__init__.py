"""What a collection's policy means, in plain words.

`privacy_statement` says it in sentences with exact factors, rounded outward, so that no loss looks
smaller than it is.
"""

from typing import TYPE_CHECKING

from ldpstream.mechanisms.base.lazy import handed_on

if TYPE_CHECKING:
    from ldpstream.agents.config.privacy.factors import factor_text, nominal_warning, round_up
    from ldpstream.agents.config.privacy.over_time import limit_of, losses_over_time
    from ldpstream.agents.config.privacy.statement import (
        YEAR_MS,
        Central,
        Privacy,
        central,
        hold_sentence,
        minimum_sentence,
        privacy_statement,
        words_sentence,
    )
else:
    __getattr__ = handed_on(
        __name__,
        {
            "ldpstream.agents.config.privacy.factors": "factor_text nominal_warning round_up",
            "ldpstream.agents.config.privacy.over_time": "limit_of losses_over_time",
            "ldpstream.agents.config.privacy.statement": (
                "YEAR_MS Central Privacy central hold_sentence minimum_sentence "
                "privacy_statement words_sentence"
            ),
        },
    )

__all__ = [
    "YEAR_MS",
    "Central",
    "Privacy",
    "central",
    "factor_text",
    "hold_sentence",
    "limit_of",
    "losses_over_time",
    "minimum_sentence",
    "nominal_warning",
    "privacy_statement",
    "round_up",
    "words_sentence",
]
