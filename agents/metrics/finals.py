"""The newest final of each collection, as stored in its state: known to a worker as it starts."""

from ldpstream.agents.document import EstimateDocument
from ldpstream.agents.served.served import ServedCollection
from ldpstream.agents.state.cells import decode_final
from ldpstream.agents.state.records import Name
from ldpstream.agents.state.view import stored_finals
from ldpstream.agents.state.windows import NEVER


class NewestFinals:
    """Reads a final once, when it is the newest for the first time."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, EstimateDocument]] = {}

    def of(self, served: ServedCollection) -> EstimateDocument | None:
        """Return the newest final; None before there is one, or once it has expired."""
        if not served.replicas or served.replicas[0].head is None:
            return None
        replica, name = served.replicas[0], served.config.name
        number, document = self._known.get(name, (NEVER, None))
        if Name("final", number) not in replica.cells:
            number, document = NEVER, None
        found = stored_finals(served.context, replica, number)
        if found:
            number = found[-1]
            content = decode_final(replica.cells[Name("final", number)].value)
            document = EstimateDocument.model_validate_json(content)
        if document is None:
            self._known.pop(name, None)
        else:
            self._known[name] = number, document
        return document
