"""Answers what changed between two spans; the rest is as for the estimate of one."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from aiohttp import web
from multidict import MultiMapping

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.config.query.capabilities import disclosed_blocks, read_options
from ldpstream.agents.config.query.options import EstimateOptions
from ldpstream.agents.document.changes import ChangeOptions, Span, write_change
from ldpstream.agents.document.flat import change_csv
from ldpstream.agents.document.model import ChangeDocument
from ldpstream.agents.engine.engine import Engine
from ldpstream.agents.web.computation import QUEUES, Job, answer_bytes, check_cost
from ldpstream.agents.web.declaration import Format
from ldpstream.agents.web.estimates import (
    CELLS_LIMIT,
    address_words,
    check_size,
    check_span,
    known_tags,
    newest_window,
    one_axis,
    tagged,
    take_span,
)
from ldpstream.agents.web.requests import (
    AnswerError,
    read_flag,
    read_time,
    readable_collection,
    requested_format,
)
from ldpstream.mechanisms.base.errors import QueryError


@dataclass(frozen=True, kw_only=True)
class ChangeJob:
    """Two spans, and what is compared."""

    before: Job
    after: Job
    options: ChangeOptions
    form: Format = "json"

    @property
    def final(self) -> bool:
        """Whether both spans are."""
        return self.before.final and self.after.final

    def tag(self, config: CollectionConfig) -> str:
        """Return a hash that identifies the answer: that of both spans, in this order."""
        texts = self.before.tag(config), self.after.tag(config), f"{self.options} {self.form}"
        return hashlib.blake2b("\n".join(texts).encode(), digest_size=16).hexdigest()

    def body(self, config: CollectionConfig) -> bytes:
        """Return the change document."""
        before, after = (
            Span(totals=job.totals, window=job.window, final=job.final)
            for job in (self.before, self.after)
        )
        body = write_change(config, before, after, self.options)
        if self.form == "csv":
            body = change_csv(ChangeDocument.model_validate_json(body))
        return body


async def change(request: web.Request) -> web.Response:
    """Answer what changed from one span to another, by default the newest window."""
    collection = readable_collection(request)
    config, form = collection.config, requested_format(request)
    options = _read(request.query, config)
    queues = request.app[QUEUES]
    published_bytes = await queues.published_bytes(config)
    # Both spans, and every value of each, since those that changed most are not known before.
    every = replace(options.estimate, top=None if options.estimate.top else 0, areas=False)
    cost_bytes = 2 * answer_bytes(config.spec, every)
    check_cost(cost_bytes, published_bytes, options.estimate)
    async with queues.turn(cost_bytes, published_bytes) as compute:
        before, after = _spans(request.query, collection)
        makes = [take_span(collection, span, options.estimate) for span in (before, after)]
        answer = await compute(
            config,
            lambda: ChangeJob(before=makes[0](), after=makes[1](), options=options, form=form),
            known_tags(request),
        )
    return tagged(request, answer, form)


def _read(query: MultiMapping[str], config: CollectionConfig) -> ChangeOptions:
    """Return what is compared, as the URL asks for it."""
    devices: Literal["different"] | None = None
    if (text := query.get("devices")) is not None:
        if text != "different":
            raise AnswerError(400, f"devices: expected different, got {text[:40]!r}")
        devices = "different"
    blocks = read_flag(query, "blocks")
    try:
        options = read_options(config.options, config.spec, address_words(query))
        about = config.attributes.get(options.attribute or "", config)
        domain, explicit = about.spec.domain.estimated, "quantile" in query
        options = one_axis(options, domain, explicit=explicit)
        _check(options, config, blocks=blocks)
    except QueryError as error:
        raise AnswerError(400, str(error)) from error
    options = replace(options, areas=False, project="none", estimand="population")
    return ChangeOptions(estimate=options, blocks=blocks, devices=devices)


def _check(options: EstimateOptions, config: CollectionConfig, *, blocks: bool) -> None:
    """Refuse what the collection does not offer, or what would take too much."""
    if config.attributes and options.attribute is None:
        raise QueryError("attribute", f"one of {', '.join(config.attributes)}")
    about = config.attributes.get(options.attribute or "", config)
    domain = about.spec.domain.estimated
    check_size(replace(options, top=None if options.top else 0), about.options, domain)
    if not blocks:
        return
    disclosed = disclosed_blocks(about.spec)
    if disclosed is None or disclosed.count < 2:
        raise QueryError("blocks", "false: reports disclose no blocks of the domain")
    if disclosed.count * domain.size > CELLS_LIMIT:
        raise QueryError(
            "blocks",
            f"false, or at most {CELLS_LIMIT // domain.size} blocks over {domain.size} values, "
            f"got {disclosed.count}; ask for some of them by range",
        )


def _spans(times: Mapping[str, str], collection: Engine) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the span to compare with, and the other one."""
    window = collection.context.window
    start_ms, end_ms = read_time(times, "start"), read_time(times, "end")
    if start_ms is None and end_ms is None:
        start_ms, end_ms = newest_window(collection)
    after = check_span(collection, start_ms, end_ms)
    names = ("before_start", "before_end")
    first_ms, last_ms = (read_time(times, name) for name in names)
    if first_ms is None and last_ms is None:
        first, end = map(window.pane, after)
        first_ms, last_ms = window.start(2 * first - end), after[0]
    before = check_span(collection, first_ms, last_ms, names=names)
    if before[0] < after[1] and after[0] < before[1]:
        shown = " to ".join(map(window.format_time, before))
        what = f"a span that does not overlap the other one, got {shown}"
        raise AnswerError(400, f"before_start: expected {what}")
    return before, after
