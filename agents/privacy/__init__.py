"""What a collection's policy means, in plain words.

`privacy_statement` says it in sentences with exact factors, rounded outward, so that no loss looks
smaller than it is.
"""

from ldpstream.agents.privacy.central import Central, central
from ldpstream.agents.privacy.factors import factor_text
from ldpstream.agents.privacy.nominal import nominal_warning
from ldpstream.agents.privacy.statement import (
    PrivacyStatement,
    hold_sentences,
    minimum_sentences,
    privacy_statement,
    spread_sentences,
    words_sentence,
)

__all__ = [
    "Central",
    "PrivacyStatement",
    "central",
    "factor_text",
    "hold_sentences",
    "minimum_sentences",
    "nominal_warning",
    "privacy_statement",
    "spread_sentences",
    "words_sentence",
]
