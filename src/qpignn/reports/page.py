"""The report as a self-contained HTML page, without network, server or further files.

Text and tables are part of the HTML, so that they are available without JavaScript and in print;
charts, the graph and the table of nodes are drawn in the browser (``assets/*.js``) from the same
content, which is embedded as JSON. Names, ids and columns come from users' files and are not
trusted: all of them are escaped, and the page's content security policy allows its own script only.
"""

from __future__ import annotations

import base64
import hashlib
import json
from itertools import groupby
from string import Template
from typing import Any

from qpignn.io.files import json_safe
from qpignn.reports.markup import Section, asset, escaped, icon, sentence
from qpignn.reports.sections import sections

SCRIPTS = ("base", "charts", "filter", "colours", "map", "graph", "card", "table", "start")
"""Parts of the page's script, in the order in which they are concatenated."""


def render_page(content: dict[str, Any]) -> str:
    """Return the whole report as HTML.

    Args:
        content: title, subtitle, made, version, level, target, side, summary, verdict, findings,
            figures, key_numbers, band, calibration, groupings, misses, errors, training, graph,
            nodes, columns, settings, versions and read, as JSON types. Parts that are None or
            empty are left out. Bounds that are None are infinite; ``graph["y"]`` increases
            downwards, ``graph["aspect"]`` is width / height, ``graph["axes"]`` has the coordinates
            at the edges of a map; epochs count from 0.
    """
    style, script = asset("page.css"), _script()
    parts = sections(content)
    links = (f'<li><a href="#{part.anchor}">{escaped(part.title)}</a></li>' for part in parts)
    return Template(asset("page.html")).substitute(
        policy=_policy(style, script),
        title=escaped(content["title"]),
        subtitle=escaped(content["subtitle"]),
        style=style,
        script=script,
        banners=_banners(content),
        contents="".join(links),
        sections="\n".join(_arrange(parts)),
        made=escaped(content["made"]),
        version=escaped(content["version"]),
        content=_embedded(content),
    )


def _script() -> str:
    """Return the parts of the script, concatenated in a function scope."""
    parts = "\n".join(asset(f"{name}.js") for name in SCRIPTS)
    return f'(() => {{\n"use strict";\n\n{parts}}})();\n'


def _policy(style: str, script: str) -> str:
    """Return the content security policy: no resources except the page's own style and script."""
    return (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _digest(source: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()


def _embedded(content: dict[str, Any]) -> str:
    """Return the content as ASCII JSON that cannot end the script element around it."""
    form: dict[str, Any] = {"allow_nan": False, "separators": (",", ":")}
    try:
        document = json.dumps(content, **form)
    except ValueError:  # a non-finite number; json_safe is slow, so only then
        document = json.dumps(json_safe(content), **form)
    return document.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _arrange(parts: list[Section]) -> list[str]:
    """Place the small sections, calibration and errors, side by side."""
    arranged = []
    for small, run in groupby(parts, lambda part: part.anchor in ("calibration", "errors")):
        pages = [part.html for part in run]
        arranged += [f'<div class="pair">{"".join(pages)}</div>'] if small else pages
    return arranged


def _banners(content: dict[str, Any]) -> str:
    """Return what went wrong in training, and the verdict."""
    training = [one for one in content["findings"] if one["kind"] == "training"]
    return "".join(
        f'<p class="verdict {one["severity"]}">{icon(one["severity"])}<span>'
        f"<strong>{one['severity'].capitalize()}.</strong> {sentence(one['text'])}</span></p>"
        for one in [*training, content["verdict"]]
    )
