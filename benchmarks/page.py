"""The table of bars as Markdown, the plots of growth as SVG, and the page around them."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench import Bench, Row

Points = Sequence[tuple[float, float]]
AXES = {
    "size": ("megabytes of text", "CPU seconds"),
    "ranks": ("ranks, 8 MB each", "CPU ns per byte"),
    "rules": ("rules", "CPU seconds for 8 x 60 MB"),
}
BEGIN, END = "<!-- begin measured -->", "<!-- end measured -->"


def table(rows: Sequence[Row]) -> str:
    lines = ["| goal | floor | target | ours | reached | remark |", "|---|---|---|---|---|---|"]
    for row in rows:
        sign = "" if row.better == "more" else "<= "
        bars = [f"{sign}{bar:g} {row.unit}" for bar in (row.floor, row.target)]
        lines.append(
            f"| {row.goal} | {bars[0]} | {bars[1]} | **{row.ours:.3g} {row.unit}** | {row.verdict} | {row.remark} |"
        )
    return "\n".join(lines)


def write(docs: Path, rows: Sequence[Row], growth: Mapping[str, Points], bench: Bench) -> None:
    """Put what was measured between the marks of docs/performance.md; the words around it stay."""
    for name, points in growth.items():
        (docs / f"performance-{name}.svg").write_text(plot(points, *AXES[name]), encoding="utf-8")
    machine = f"{os.cpu_count()} processors ({platform.machine()}), Python {platform.python_version()}"
    load = os.getloadavg()[1]
    plots = "\n".join(f"![growth with {name}](performance-{name}.svg)" for name in growth)
    told = f"Measured on {machine}, {bench.runs} pairs, load average at the end {load:.1f}.\n\n{table(rows)}\n\n{plots}"
    path = docs / "performance.md"
    before, _, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    path.write_text(f"{before}{BEGIN}\n{told}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


def plot(points: Points, across: str, up: str) -> str:
    """Draw points joined by a line, both axes from 0."""
    right, top = max(x for x, _ in points) * 1.05, max(y for _, y in points) * 1.15
    places = [(60 + 400 * x / right, 210 - 180 * y / top) for x, y in points]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    marks = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="#0969da"/>'
        f'<text x="{x:.1f}" y="{y - 8:.1f}" text-anchor="middle">{told:.3g}</text>'
        f'<text x="{x:.1f}" y="226" text-anchor="middle">{at:.0f}</text>'
        for (x, y), (at, told) in zip(places, points, strict=True)
    )
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" width="480" height="256" font-family="sans-serif" font-size="11">'
        '<rect width="480" height="256" fill="#ffffff"/>'
        '<path d="M60 20V210H460" stroke="#57606a" fill="none"/>'
        f'<polyline points="{line}" fill="none" stroke="#0969da" stroke-width="1.5"/>{marks}'
        f'<text x="260" y="246" text-anchor="middle">{across}</text>'
        f'<text x="16" y="115" text-anchor="middle" transform="rotate(-90 16 115)">{up}</text></svg>\n'
    )
