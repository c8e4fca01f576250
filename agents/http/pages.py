"""The list of windows, page by page: forward from the oldest, or backward from the newest."""

from typing import Final
from urllib.parse import urlencode

from aiohttp import web

from ldpstream.agents.document.answers import WindowList, WindowState
from ldpstream.agents.document.flat import Cell, to_csv
from ldpstream.agents.http.describe import describe_window
from ldpstream.agents.http.lookup import kept_windows, readable_collection
from ldpstream.agents.http.parameters import CONTENT_TYPES, read_page, read_time, wanted_format
from ldpstream.agents.state.view import WindowInfo

HEADER: Final = ("start", "end", "n", "late", "final", "published")


async def window_list(request: web.Request) -> web.Response:
    """Answer the windows with reports, oldest first, with a link to the next page."""
    served = readable_collection(request)
    form = wanted_format(request)
    page = read_page(request.query)
    from_ms, to_ms = read_time(request.query, "from"), read_time(request.query, "to")
    chosen = [
        info
        for info in kept_windows(served)
        if _within(info, from_ms, to_ms)
        and (page.after_ms is None or info.start_ms > page.after_ms)
    ]
    shown = chosen[: page.number] if page.forward else chosen[-page.number :]
    answer = WindowList(
        collection=served.config.name,
        windows=[describe_window(info) for info in shown],
        more=len(chosen) > len(shown),
    )
    headers = {"Vary": "Accept"}
    if answer.more:
        # Windows have distinct ends, so "to" leaves exactly those before the first shown one.
        after, to = ("after", shown[-1].start_ms), ("to", shown[0].end_ms - 1)
        link = _link(request, "next", after) if page.forward else _link(request, "prev", to)
        headers["Link"] = link
    if form == "csv":
        body = to_csv((_row(one) for one in answer.windows), HEADER)
        return web.Response(
            body=body, headers=headers, content_type=CONTENT_TYPES[form], charset="utf-8"
        )
    return web.Response(
        text=answer.model_dump_json(), headers=headers, content_type=CONTENT_TYPES[form]
    )


def _within(info: WindowInfo, from_ms: int | None, to_ms: int | None) -> bool:
    return (from_ms is None or info.start_ms >= from_ms) and (to_ms is None or info.end_ms <= to_ms)


def _link(request: web.Request, relation: str, moved: tuple[str, int]) -> str:
    """Return a link relative to the request, so that it holds wherever the app is mounted."""
    kept = [(name, text) for name, text in request.query.items() if name != moved[0]]
    return f'<?{urlencode([*kept, (moved[0], str(moved[1]))])}>; rel="{relation}"'


def _row(one: WindowState) -> list[Cell]:
    return [one.window.start, one.window.end, one.n, one.late, one.final, one.published]
