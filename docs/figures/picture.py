"""An SVG in the making: text, boxes, lines and dots, in colours for light and for dark."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

PALETTES: Final = {
    "light": {
        "ground": "#ffffff",
        "text": "#1f2933",
        "soft": "#55606c",
        "box": "#eef2f7",
        "edge": "#7b8794",
        "main": "#1f5fa8",
        "warn": "#b3261e",
    },
    "dark": {
        "ground": "#1d2329",
        "text": "#e8ecf0",
        "soft": "#a9b4bf",
        "box": "#2b343d",
        "edge": "#8b97a3",
        "main": "#7db4f0",
        "warn": "#ff8a80",
    },
}
"""The colours by the reader's scheme; text on `ground` and on `box` has a contrast above 4.5."""
STYLE: Final = """\
text {{ font: 14px system-ui, sans-serif; fill: {text}; }}
.ground {{ fill: {ground}; stroke: {edge}; }}
.soft {{ fill: {soft}; font-size: 13px; }}
.bold {{ font-weight: 600; }}
.box {{ fill: {box}; stroke: {edge}; }}
.zone {{ fill: none; stroke: {edge}; stroke-dasharray: 2 4; }}
.line {{ fill: none; stroke: {edge}; stroke-width: 1.5; }}
.guide {{ fill: none; stroke: {edge}; stroke-dasharray: 3 4; }}
.main {{ fill: none; stroke: {main}; stroke-width: 2.5; }}
.warn {{ fill: none; stroke: {warn}; stroke-width: 2.5; }}
.filled {{ fill: {main}; }}
.empty {{ fill: {ground}; stroke: {main}; stroke-width: 2; }}
.bad {{ fill: {warn}; }}
"""


@dataclass
class Picture:
    """A figure in the making; coordinates are pixels from the upper left corner."""

    width: int
    height: int
    title: str
    parts: list[str] = field(default_factory=list)

    def text(self, x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> None:
        escaped = text.replace("&", "&amp;").replace("<", "&lt;")
        attributes = f'class="{kind}" text-anchor="{anchor}"'
        self.parts.append(f'<text x="{x:g}" y="{y:g}" {attributes}>{escaped}</text>')

    def rectangle(self, x: float, y: float, width: float, height: float, kind: str = "box") -> None:
        size = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="5"'
        self.parts.append(f'<rect {size} class="{kind}"/>')

    def box(self, x: float, y: float, width: float, height: float, *lines: str) -> None:
        """Draw a box with centred lines, the first of them bold."""
        self.rectangle(x, y, width, height)
        top = y + height / 2 + 5 - 9 * (len(lines) - 1)
        for number, line in enumerate(lines):
            kind = "soft" if number else "bold"
            self.text(x + width / 2, top + 18 * number, line, kind, "middle")

    def path(self, points: Sequence[tuple[float, float]], kind: str = "line") -> None:
        joined = " ".join(f"{x:g},{y:g}" for x, y in points)
        end = ' marker-end="url(#head)"' if kind == "arrow" else ""
        self.parts.append(
            f'<polyline points="{joined}" class="{kind.replace("arrow", "line")}"{end}/>'
        )

    def dot(self, x: float, y: float, kind: str = "filled", radius: float = 6) -> None:
        self.parts.append(f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" class="{kind}"/>')

    def svg(self) -> str:
        """Return the figure's file."""
        light, dark = (STYLE.format(**colours) for colours in PALETTES.values())
        size = f'viewBox="0 0 {self.width} {self.height}" width="{self.width}"'
        ground = f'<rect x=".5" y=".5" width="{self.width - 1}" height="{self.height - 1}" rx="8" '
        head = '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" '
        head += 'markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8" class="line"/></marker>'
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size}>',
                f"<title>{self.title}</title>",
                f"<style>\n{light}@media (prefers-color-scheme: dark) {{\n{dark}}}\n</style>",
                f'<defs>{head}</defs>{ground}class="ground"/>',
                *self.parts,
                "</svg>\n",
            ]
        )
