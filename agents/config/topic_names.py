"""The names of a collection's topics, all derived from the source topic and the worker's id."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields

from ldpstream.agents.config.errors import ConfigError, key_path, shown


@dataclass(frozen=True, kw_only=True)
class Topics:
    """The topics of one collection.

    Only `source` is written by devices; worker and operator write the others.
    """

    source: str
    late: str
    """Copies of reports that arrived after their pane had closed, as frames."""
    rejected: str
    """Copies of messages that could not be counted, with the reason in the headers."""
    estimates: str
    """Estimate documents, provisional and final, with different keys."""
    control: str
    """Orders to close panes, written by operators, never by devices."""
    changelog: str
    """Commit records and state entries, compacted, partition for partition with the source."""
    rounds: str | None = None
    """The questions of rounds, from `discover` to devices; None without unknown words."""

    @classmethod
    def derive(
        cls,
        source: str,
        *,
        worker_id: str,
        collection: str,
        words: bool = False,
    ) -> "Topics":
        """Return the topics of a collection that reads `source`."""
        return cls(
            source=source,
            late=f"{source}.late",
            rejected=f"{source}.rejected",
            estimates=f"{source}.estimates",
            control=f"{source}.control",
            changelog=f"{worker_id}-{collection}-changelog",
            rounds=f"{source}.rounds" if words else None,
        )

    def names(self) -> tuple[str, ...]:
        """Return all names, the source first."""
        names = (getattr(self, field.name) for field in fields(self))
        return tuple(name for name in names if name is not None)


def check_topics(
    collections: Iterable[tuple[str, Topics]], uses: Mapping[str, str] | None = None
) -> None:
    """Refuse topics that are used twice; `uses` are further topics, and what each is for.

    Names that differ only in dots and underscores count as equal: brokers refuse such pairs,
    whose metrics would collide.

    Raises:
        ConfigError: at the later collection's `topic`, naming the topic's first use.
    """
    uses_by_topic = {topic.replace(".", "_"): use for topic, use in (uses or {}).items()}
    for name, topics in collections:
        path = key_path(["collection", name])
        for field in fields(topics):
            topic = getattr(topics, field.name)
            if topic is None:
                continue
            use = f"the {field.name} topic of {path}"
            other = uses_by_topic.setdefault(topic.replace(".", "_"), use)
            if other != use:
                raise ConfigError(
                    f"{path}.topic",
                    f"expected topics of its own, got {shown(topic)} as {use}, "
                    f"which is also {other}",
                )
