"""Messages as a packer packs them."""

from collections.abc import Sequence

import numpy as np

from ldpstream.agents.state.packed import PackedRecords, Record


def make_records(
    records: Sequence[Record],
    *,
    arrived: Sequence[int] | None = None,
    appended: bool = False,
) -> PackedRecords:
    """Return messages, offsets ascending, as a packer packs them, with their times of arrival."""
    lengths = np.array([-1 if v is None else len(v) for _, v in records], dtype=np.int64)
    data = np.frombuffer(b"".join(v for _, v in records if v), dtype=np.uint8)
    same = len(lengths) > 0 and lengths[0] >= 0 and bool((lengths == lengths[0]).all())
    offsets = np.array([offset for offset, _ in records], dtype=np.int64)
    length = int(lengths[0]) if same else None
    when = None if arrived is None else np.array(arrived, dtype=np.int64)
    return PackedRecords(offsets, lengths, data, length, when, appended)
