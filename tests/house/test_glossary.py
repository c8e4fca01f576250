"""The glossary has each term once, in a few words, and pages lead to it from a term's first use."""

import re

from tests.house.scripts import script
from tests.pages import ROOT

glossary = script("glossary")
TEXT = glossary.GLOSSARY.read_text("utf-8")
TERMS = glossary.entries(TEXT)


def test_terms_are_in_order_once_each():
    headings = re.findall("^## (.+)$", TEXT, re.MULTILINE)
    assert len(headings) > 60
    assert [*TERMS] == headings
    assert headings == sorted(set(headings), key=lambda one: one.strip("`").lower())


def test_a_meaning_is_a_sentence_or_two():
    sentences = {term: re.findall(r"[.](?= [A-Z`]|$)", text) for term, text in TERMS.items()}
    assert {term for term, ends in sentences.items() if not 1 <= len(ends) <= 3} == set()


def test_the_site_is_built_with_the_hook():
    assert '"glossary.py"' in (ROOT / ".ci" / "docs.py").read_text("utf-8")


def linked(html: str) -> str:
    terms = {"value": "What a device has.", "policy": "A rule.", "`hold`": "A key, `hold`."}
    found = glossary.link_terms(html, terms, "../glossary.html")
    return re.sub(
        r'<a class="term" href="../glossary.html#(\w+)" title="([^"]*)">', r"[\1|\2]", found
    )


def test_the_first_use_of_a_term_is_linked_and_no_other():
    assert (
        linked("<p>Values, a value</p>") == "<p>[value|What a device has.]Values</a>, a value</p>"
    )
    assert linked("<p>two policies</p>") == "<p>two [policy|A rule.]policies</a></p>"
    assert linked("<p>evaluate, hold</p>") == "<p>evaluate, hold</p>"


def test_keys_are_linked_where_they_are_code():
    shown = "[hold|A key, hold.]<code>hold = 91</code></a> <code>hold</code> <code>value</code>"
    assert linked("<code>hold = 91</code> <code>hold</code> <code>value</code>") == shown


def test_links_headings_and_blocks_of_code_stay():
    for html in (
        '<a href="x">a value <code>hold</code></a>',
        "<h2>Value<a>#</a></h2>",
        "<pre><span>value</span><code>hold</code></pre>",
        '<img alt="a value">',
    ):
        assert linked(html) == html
    assert linked("<h2>Value</h2>value").endswith("[value|What a device has.]value</a>")
