"""CSV for clients that ask for it, with the numbers of the document."""

import csv
import io
import json

from ldpstream.agents.document.flat import HEADER, to_csv
from tests.stream.asking import CITY_PATH, Client, ask
from tests.stream.serving import START_MS, Pipeline


async def test_csv_holds_the_numbers_of_the_document(client: Client) -> None:
    query = "?top=3&range=0..1,0..1&linear=w:" + ",".join(["0.5"] * 30 + ["1"] * 30)
    document = await ask(client, CITY_PATH + query)
    answer = await client.get(f"{CITY_PATH}{query}&format=csv")
    assert (answer.content_type, answer.charset) == ("text/csv", "utf-8")
    text = await answer.text()
    assert text.endswith("\r\n")
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert tuple(rows[0]) == HEADER
    assert [row["kind"] for row in rows] == ["value"] * 3 + ["range", "linear"]
    entries = document["distribution"] + document["ranges"]
    for row, entry in zip(rows, entries, strict=False):
        for column, key in (("value", "share"), ("low", "low"), ("high", "high"), ("se", "se")):
            assert float(row[column]) == entry[key]
        assert int(row["forged"]) == entry["forged"]
        assert (row["n"], row["final"]) == ("400", "false")
    assert json.loads(rows[0]["name"]) == document["distribution"][0]["value"]
    assert float(rows[4]["value"]) == document["linear"][0]["mean"]
    ages = await client.get("/api/collections/ages/estimate?top=0&format=csv")
    (quantile,) = csv.DictReader(io.StringIO(await ages.text(), newline=""))
    assert (quantile["kind"], quantile["p"], quantile["value"]) == (
        "quantile",
        "0.5",
        "[10.0, 20.0]",
    )


async def test_a_withheld_document_is_one_row(client: Client, pipeline: Pipeline) -> None:
    pipeline.collections["rides"].report(0, ["bus"] * 7, times_ms=[START_MS] * 7)
    answer = await client.get("/api/collections/rides/estimate?format=csv")
    (row,) = csv.DictReader(io.StringIO(await answer.text(), newline=""))
    assert (row["n"], row["withheld"], row["kind"], row["value"]) == ("7", "true", "none", "")
    assert None not in row.values()


def test_no_cell_is_a_formula_and_quotes_survive() -> None:
    rows = [["=1+1", "@x", "-5", "+5", "\tx", 'a"b', "a,b", "a\r\nb", -0.5, None, True, "é"]]
    text = to_csv(rows, [str(i) for i in range(12)]).decode()
    (row,) = csv.reader(io.StringIO(text.split("\r\n", 1)[1], newline=""))
    assert row[:5] == ["'=1+1", "'@x", "'-5", "'+5", "'\tx"]
    assert row[5:] == ['a"b', "a,b", "a\r\nb", "-0.5", "", "true", "é"]
