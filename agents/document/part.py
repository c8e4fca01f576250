"""The base of the models that documents consist of."""

from collections.abc import Iterable
from typing import Any, Self

from pydantic import BaseModel, ConfigDict

Number = float | None
"""A finite number, or null where it is undefined."""


class Part(BaseModel):
    """A part of a document: immutable, and without undeclared fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @classmethod
    def of_each(cls, given: set[str], rows: Iterable[dict[str, Any]]) -> list[Self]:
        """Return parts from rows with values for all fields; only the fields `given` are written.

        Like `model_construct`, but without aliases and defaults, in a fifth of the time, for the
        many values of a list. The parts keep the rows, and share the set.
        """
        parts = []
        for fields in rows:
            part = cls.__new__(cls)
            object.__setattr__(part, "__dict__", fields)
            object.__setattr__(part, "__pydantic_fields_set__", given)
            object.__setattr__(part, "__pydantic_extra__", None)
            object.__setattr__(part, "__pydantic_private__", None)
            parts.append(part)
        return parts
