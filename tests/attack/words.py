"""Forged rounds of a discovery of words, published to make devices report more than once."""

import asyncio
import json
import time
import tomllib
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from tests.attack.stand import Attack, Outcome, Stand

_WINDOW_MS = 10_000
_ROUNDS = 2
_COLLECTION = """mechanism = "projective-geometry"
epsilon = {epsilon}
domain = {{ words = {{ bits = 16, rounds = 2, kept = 16 }} }}
precision = "1s"
partitions = 1
minimum = 1
window = {{ size = "10s", grace = "0s", idle = "off" }}"""
_KEPT = {0: [""], 1: [f"{int.from_bytes(b'ok'):016b}"]}
"""What the rounds ask about: all words, then one."""


async def asked_again_and_for_more(stand: Stand) -> Outcome:
    """Publish rounds of a larger epsilon, beyond the number, twice a window, and of another run."""
    file = stand.configure({"words": _COLLECTION.format(epsilon="4.0")})
    greedy = stand.configure({"words": _COLLECTION.format(epsilon="40.0")})
    own, larger = (_fingerprint(stand, str(one)) for one in (file, greedy))
    topic = tomllib.loads(file.read_text())["collection"]["words"]["topic"]
    run_ms = _ROUNDS * _WINDOW_MS
    first_ms = (int(time.time() * 1000) // run_ms - 20) * run_ms
    devices = 1 if stand.short else 5
    with stand.serving("worker", "-c", str(file)):
        for window in range(2 * _ROUNDS):
            number, start_ms = window % _ROUNDS, first_ms + window * _WINDOW_MS
            honest = {
                "fingerprint": own, "round": number, "prefixes": _KEPT[number],
                "start_ms": start_ms, "end_ms": start_ms + _WINDOW_MS,
            }  # fmt: skip
            forged = {"fingerprint": larger}, {"round": _ROUNDS}, {"prefixes": ["0", "1"]}
            await _publish(stand, f"{topic}.rounds", [honest | one for one in forged])
            await _publish(stand, f"{topic}.rounds", [honest, honest | {"prefixes": []}])
            for device in range(devices):
                ledger = "--ledger", str(stand.folder / f"{device}.ledger"), "--budget", "4"
                asked = "send", "words", "-c", str(file), "--times", "--replay", *ledger
                said = f"{start_ms},ok\n".encode()
                await asyncio.to_thread(stand.run, *asked, stdin=said * 2)
        values = await _values(stand, topic)
    reports = f"{len(values)} reports of {devices} devices in two runs of {_ROUNDS} rounds"
    strange = sum(bytes.fromhex(own) not in value for value in values)
    return Outcome(
        len(values) == devices and not strange, f"{reports}, {strange} of them under another spec"
    )


def _fingerprint(stand: Stand, file: str) -> str:
    ran = stand.run("certify", "words", "-c", file)
    found: str = json.loads(ran.stdout)["collections"][0]["fingerprint"]
    return found


async def _publish(stand: Stand, topic: str, rounds: list[dict[str, Any]]) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=stand.broker.bootstrap)
    await producer.start()
    try:
        for one in rounds:
            await producer.send_and_wait(topic, json.dumps(one).encode(), partition=0)
    finally:
        await producer.stop()


async def _values(stand: Stand, topic: str) -> list[bytes]:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=stand.broker.bootstrap, auto_offset_reset="earliest", group_id=None
    )
    await consumer.start()
    try:
        partition, found = TopicPartition(topic, 0), list[bytes]()
        consumer.assign([partition])
        end = (await consumer.end_offsets([partition]))[partition]
        await consumer.seek_to_beginning(partition)
        while await consumer.position(partition) < end:
            for records in (await consumer.getmany(timeout_ms=500)).values():
                found += [record.value for record in records]
        return found
    finally:
        await consumer.stop()


ATTACKS = (
    Attack(
        "words-asked-again",
        "a device reports its word once, whoever publishes rounds and whatever they ask",
        asked_again_and_for_more,
    ),
)
