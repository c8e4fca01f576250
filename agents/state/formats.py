"""Rule 14: formats of a state, and how a collection moves to a newer one while releases are mixed.

1. A head is written in a format, and names the newest one that its writer reads. A head that names
   none comes from a release that only reads format 1.
2. A state is written in the format of partition 0's winning head. The owner of partition 0 raises
   it, once the winning heads of all partitions have said for `SWITCH_MS` that their writers read
   the newer one. It never goes back. A new state begins with the newest format.
3. An owner that reads less than the head it loads says so at once. One that reads more says so with
   its next write or, without any, after it has held the partition undisturbed for the switch's and
   the idle time: quiet partitions would hold the switch back otherwise, and two groups that read
   different formats must not displace each other for ever.

So any release may own any partition until the switch; one that does not read the new format refuses
the first head in it by name. An owner may say less than it reads (`Context.format`), which holds
the switch back.
"""

from typing import Final

NEWEST: Final = 2
"""The newest format that this release reads and writes; it reads and writes all from 1 on."""
GATHERS: Final = 2
"""The first format in which partition 0 stores closed panes for all partitions (rule 13)."""
SWITCH_MS: Final = 30_000
"""The longest default session of a worker, after which a partition's owner is known; for a longer
session the wait is longer."""
