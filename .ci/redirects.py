"""Lead from where pages stood to where they are: a hook of MkDocs.

A page that was divided leads on by its headings.
"""

import json
from pathlib import Path
from posixpath import dirname, relpath
from typing import Final

from mkdocs.config.defaults import MkDocsConfig

_MOVED: Final = {
    "guides/policy": "how-to/choose-policy",
    "guides/choose": "how-to/choose-mechanism",
    "guides/bounds": "how-to/read-bounds",
    "guides/jobs": "how-to/four-jobs",
    "guides/mechanism": "how-to/write-a-mechanism",
    "operations": "how-to/deploy",
    "operations#prometheus": "how-to/monitor",
    "operations#rejected-reports": "how-to/troubleshoot",
    "operations#when-something-stops": "how-to/troubleshoot",
    "operations#when-windows-wait": "how-to/troubleshoot",
    "operations#clocks": "how-to/troubleshoot",
    "runbooks": "how-to/back-up-and-restore",
    "runbooks#erase-a-collection": "how-to/erase-data",
    "changes": "how-to/change-spec",
    "changes#another-release": "how-to/upgrade",
    "scale": "how-to/scale",
    "scale#what-it-takes": "how-to/size",
    "python": "how-to/python",
    "consume": "how-to/consume-estimates",
    "discover": "how-to/discover-words",
    "devices": "how-to/devices",
    "gateway": "how-to/gateway",
    "kafka": "how-to/kafka-auth",
    "plan": "how-to/plan",
    "minimum": "reference/minimum",
    "state": "reference/state",
    "limits": "reference/limits",
    "http": "reference/http",
    "page": "reference/page",
    "policies": "reference/policies",
    "channel-files": "reference/channel-files",
    "estimates": "reference/estimates",
    "faults": "internals/faults",
    "commands": "reference/commands",
    "names": "reference/names",
    "configuration": "reference/keys",
    "metrics": "reference/metrics",
    "mistakes": "reference/mistakes",
}
_PAGE: Final = """\
<!doctype html><meta charset="utf-8"><title>Moved</title>
<script>
const headings = {headings};
location.replace((headings[location.hash.slice(1)] || "{to}") + location.hash);
</script>
<meta http-equiv="refresh" content="0; url={to}">
<a href="{to}">{to}</a>
"""


def on_post_build(config: MkDocsConfig) -> None:
    """Write a page at every old address. One that leads nowhere stops the build."""
    site = Path(config.site_dir) / "docs"
    for old, new in _MOVED.items():
        if not (site / f"{new}.html").exists():
            raise FileNotFoundError(f"{old} is to lead to {new}, which the site lacks")
        if "#" in old:
            continue
        headings = {
            one.partition("#")[2]: f"{relpath(to, dirname(old) or '.')}.html"
            for one, to in _MOVED.items()
            if one.startswith(f"{old}#")
        }
        place = site / f"{old}.html"
        place.parent.mkdir(exist_ok=True)
        to = f"{relpath(new, dirname(old) or '.')}.html"
        place.write_text(_PAGE.format(headings=json.dumps(headings), to=to), "utf-8")
