"""`accept`: what an earlier file decides, and which earlier files are refused."""

import json
from pathlib import Path

import pytest

from ldpstream.agents.config import ConfigError, load_config
from tests.stream.cli import invoke

TABLE = """[collection.trips]
mechanism = "block-hadamard"
epsilon = {epsilon}
domain = {{ size = 12 }}
topic = "{topic}"
partitions = {partitions}
window = {{ size = "{size}", retention = "{retention}" }}
minimum = {minimum}
rejected = "{rejected}"
{extra}
"""
DEFAULTS = {
    "epsilon": "1.0",
    "topic": "trips.reports",
    "partitions": "4",
    "size": "1h",
    "retention": "7d",
    "minimum": "100",
    "rejected": "copy",
    "extra": "",
}


def write(folder: Path, name: str, text: str = TABLE, **keys: str) -> Path:
    file = folder / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(text.format(**(DEFAULTS | keys)))
    return file


def refusal(file: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        load_config(file, environment={})
    message = str(caught.value)
    assert "\n" not in message
    return message.removeprefix(f"{file}: ")


def accepting(folder: Path, *files: str, **keys: str) -> Path:
    listed = ", ".join(f'"{name}"' for name in files)
    return write(folder, "new.toml", epsilon="2.0", extra=f"accept = [{listed}]", **keys)


def test_an_earlier_file_decides_the_spec_and_the_new_one_the_topics(tmp_path: Path):
    write(
        tmp_path,
        "past/old.toml",
        partitions="2",
        size="30m",
        retention="2h",
        minimum="7",
        rejected="copy",
        # What it accepts itself is ignored, and may go in circles.
        extra='accept = ["../new.toml", "absent.toml"]',
    )
    file = accepting(tmp_path, "past/old.toml", partitions="8", rejected="count")
    own = load_config(file, environment={}).collections["trips"]
    (old,) = own.accept
    assert old.spec.fingerprint != own.spec.fingerprint
    assert (old.window.size_ms, old.window.retention_ms) == (1_800_000, 7_200_000)
    assert old.minimum == 7
    assert old.topics == own.topics
    assert (old.partitions, old.rejected) == (8, "count")
    assert old.accept == ()


def test_files_of_an_earlier_file_are_relative_to_it(tmp_path: Path):
    text = TABLE.replace("{{ size = 12 }}", '{{ file = "values.csv" }}')
    write(tmp_path, "past/old.toml", text)
    (tmp_path / "past" / "values.csv").write_text("bus\ntram\n")
    (old,) = load_config(accepting(tmp_path, "past/old.toml")).collections["trips"].accept
    assert old.spec.domain.size == 2


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"topic": "rides"}, "old.toml: expected the topic of [collection.trips], trips.reports, "),
        ({"epsilon": "2.0"}, "old.toml: expected a spec of its own, got this collection's, "),
        ({"epsilon": "0"}, "old.toml: collection.trips.epsilon: expected a finite number above 0"),
        ({"partitions": "0"}, "old.toml: collection.trips.partitions: expected at least 1, got 0"),
        ({"extra": "colour = 1"}, "old.toml: collection.trips.colour: unknown key; expected one"),
        ({"extra": "]"}, "old.toml: line 10: expected TOML: "),
    ],
)
def test_earlier_files_that_contradict_are_refused(
    tmp_path: Path, keys: dict[str, str], problem: str
):
    write(tmp_path, "old.toml", **keys)
    assert refusal(accepting(tmp_path, "old.toml")).startswith(
        f"collection.trips.accept[0]: {problem}"
    )


def test_an_earlier_file_without_the_collection_is_refused(tmp_path: Path):
    write(tmp_path, "old.toml", TABLE.replace("trips]", "rides]"))
    assert refusal(accepting(tmp_path, "old.toml")) == (
        "collection.trips.accept[0]: old.toml: collection: "
        'expected a collection of the same name, trips, got "rides"'
    )


def test_a_spec_cannot_be_accepted_twice(tmp_path: Path):
    write(tmp_path, "old.toml")
    write(tmp_path, "older.toml", minimum="5")
    assert refusal(accepting(tmp_path, "old.toml", "older.toml")).startswith(
        "collection.trips.accept[1]: older.toml: expected a spec of its own, got another's, "
    )


def test_more_than_eight_earlier_files_are_refused(tmp_path: Path):
    said = refusal(accepting(tmp_path, *[f"{i}.toml" for i in range(9)]))
    assert said.startswith("collection.trips.accept: ")
    assert "at most 8" in said


def test_certify_proves_accepted_specs_too(tmp_path: Path):
    write(tmp_path, "old.toml")
    file = accepting(tmp_path, "old.toml")
    own = load_config(file).collections["trips"]
    result = invoke("certify", "-c", str(file), "trips")
    assert result.exit_code == 0, result.output
    shown = json.loads(result.stdout)["collections"]
    assert [one["fingerprint"] for one in shown] == [
        one.spec.fingerprint.hex() for one in (own, *own.accept)
    ]
    assert all(one["pass"] for one in shown)
