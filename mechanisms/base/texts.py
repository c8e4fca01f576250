"""What people see of a text, where Unicode has several spellings; and numbers of things."""

from typing import Final
from unicodedata import is_normalized, normalize

# Other marks without width join or part letters, which people see.
_UNSEEN: Final = dict.fromkeys((0xAD, 0x200B, 0x2060, 0xFEFF))


def canonical_text(text: str) -> str:
    r"""Return the spelling of a text in Unicode's form NFC, in which labels are compared.

    Keyboards write an accented letter as one character (NFC); some file systems and libraries
    write the letter and its accent as two (NFD).

    >>> canonical_text("Cafe\u0301") == "Caf\u00e9"
    True
    """
    return text if text.isascii() or is_normalized("NFC", text) else normalize("NFC", text)


def seen_text(text: str) -> str:
    """Return what people see of a text: also without spaces at its ends and repeated ones.

    A byte order mark between files, for example, is a space without width.
    """
    if not text.isascii():
        text = canonical_text(text).translate(_UNSEEN)
    return " ".join(text.split())


def count(number: int, what: str) -> str:
    """Return a number of things, with commas.

    >>> count(1, "broker"), count(1200, "broker"), count(2, "prefix")
    ('1 broker', '1,200 brokers', '2 prefixes')
    """
    if number != 1:
        what += "es" if what.endswith("x") else "s"
    return f"{number:,} {what}"
