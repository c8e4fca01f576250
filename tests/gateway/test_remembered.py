"""The file of idempotency keys: what it keeps, for how long, and for which process."""

from pathlib import Path

import pytest

from ldpstream.agents.edge.upload_keys import Upload, UploadKeys, UploadKeysError

MINUTE_MS = 60_000


def upload(number: int) -> Upload:
    return Upload(number.to_bytes(16, "big"), bytes([number]) * 16, number)


def test_keys_are_forgotten_beyond_a_number_and_an_age(tmp_path: Path):
    path = tmp_path / "new" / "gateway.sqlite"
    with UploadKeys(path, most=3, keep_ms=10 * MINUTE_MS) as remembered:
        for number in range(5):
            remembered.add([upload(number)], now_ms=number * MINUTE_MS)
        known = [remembered.find(upload(number).key) for number in range(5)]
        assert known == [None, None, upload(2), upload(3), upload(4)]
        remembered.add([upload(3), upload(9)], now_ms=13 * MINUTE_MS)
        assert [remembered.find(upload(n).key) for n in (2, 3, 9)] == [None, upload(3), upload(9)]
    assert path.stat().st_mode & 0o077 == 0
    with UploadKeys(path, most=3, keep_ms=10 * MINUTE_MS) as remembered:
        assert (remembered.count, remembered.find(upload(9).key)) == (3, upload(9))


def test_keys_of_one_hash_are_told_apart_however_many_there_are(tmp_path: Path):
    alike = [Upload(bytes(8) + bytes([0, number]) + bytes(6), b"d" * 16, 1) for number in range(9)]
    alike += [Upload(bytes(8) + bytes([1, number]) + bytes(6), b"d" * 16, 1) for number in range(9)]
    with UploadKeys(tmp_path / "a.sqlite", most=4, keep_ms=10 * MINUTE_MS) as remembered:
        for one in alike:
            # Also a key that is stored already, whose hash is then counted twice.
            remembered.add([one, one], now_ms=0)
        assert [remembered.find(one.key) for one in alike] == [None] * 14 + alike[-4:]
        remembered.add([upload(3)], now_ms=20 * MINUTE_MS)
        assert not any(remembered.find(one.key) for one in alike)
        assert remembered.find(upload(3).key) == upload(3)


def test_one_process_locks_it_and_a_foreign_file_is_not_touched(tmp_path: Path):
    path = tmp_path / "gateway.sqlite"
    with (
        UploadKeys(path, most=1, keep_ms=1),
        pytest.raises(UploadKeysError, match="another gateway uses"),
    ):
        UploadKeys(path, most=1, keep_ms=1)
    strange = tmp_path / "strange.sqlite"
    strange.write_bytes(b"not ours" * 1000)
    with pytest.raises(UploadKeysError, match="cannot use"):
        UploadKeys(strange, most=1, keep_ms=1)
    assert strange.read_bytes() == b"not ours" * 1000


def test_a_folder_that_cannot_be_made_is_named_by_its_key(tmp_path: Path):
    taken = tmp_path / "data"
    taken.write_text("")
    with pytest.raises(UploadKeysError, match=f"^worker.data: cannot write {taken}: "):
        UploadKeys(taken / "gateway.sqlite", most=1, keep_ms=1)
