"""Check that no two collections share a topic, configured or derived."""

from collections.abc import Iterable, Mapping
from dataclasses import fields

from ldpstream.agents.config.errors import ConfigError, key_path, shown
from ldpstream.agents.config.topic_names import Topics


def check_topics(
    collections: Iterable[tuple[str, Topics]], uses: Mapping[str, str] | None = None
) -> None:
    """Refuse topics that are used twice; `uses` are further topics, and what each is.

    Names that differ only in dots and underscores count as equal: brokers refuse such pairs,
    because their metrics cannot distinguish them.

    Raises:
        ConfigError: at the later collection's `topic`, naming the topic's first use.
    """
    taken = {topic.replace(".", "_"): use for topic, use in (uses or {}).items()}
    for name, topics in collections:
        path = key_path(["collection", name])
        for field in fields(topics):
            topic = getattr(topics, field.name)
            if topic is None:
                continue
            use = f"the {field.name} topic of {path}"
            other = taken.setdefault(topic.replace(".", "_"), use)
            if other != use:
                raise ConfigError(
                    f"{path}.topic",
                    f"expected topics of its own, got {shown(topic)} as {use}, "
                    f"which is also {other}",
                )
