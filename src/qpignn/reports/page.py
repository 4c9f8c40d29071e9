"""A report as one page of HTML that needs nothing else: no network, no server, no other file.

What matters is written here, as text and tables, so that it is there without JavaScript and on
paper; charts, the graph and the table of nodes are drawn in the browser (``assets/*.js``) from
the same content, which is embedded as JSON. Names, ids and columns come from users' files and are
never trusted: everything written here is escaped, and the page's own policy lets no script run but
ours.
"""

from __future__ import annotations

import base64
import hashlib
import json
from importlib.resources import files
from string import Template
from typing import Any

from qpignn.io.files import json_safe
from qpignn.reports.markup import WORDS, Section, icon, sentence, text
from qpignn.reports.sections import sections

SCRIPTS = ("base", "charts", "filter", "colours", "map", "graph", "card", "table", "start")
"""The parts of the page's script, in the order in which they are joined."""


def render_page(content: dict[str, Any]) -> str:
    """Return the whole report as HTML.

    Args:
        content: title, subtitle, made, version, level, target, side, summary, verdict, findings,
            figures, key_numbers, band, calibration, groupings, misses, errors, training, graph,
            nodes, columns, settings, versions and read, in plain Python types. A part that is None
            or empty is left out. Bounds that are None are unbounded; ``graph["y"]`` grows
            downwards, as on a screen, ``graph["aspect"]`` is width over height, and
            ``graph["axes"]`` has the coordinates at the edges of a map; epochs count from 0.
    """
    style, script = _asset("page.css"), _script()
    parts = sections(content)
    return Template(_asset("page.html")).substitute(
        policy=_policy(style, script),
        title=text(content["title"]),
        style=style,
        script=script,
        header=_header(content),
        contents=_contents(parts),
        sections="\n".join(_arrange(parts)),
        footer=f"<p>Made {text(content['made'])} with qpignn {text(content['version'])}.</p>",
        content=_embedded(content),
    )


def _asset(name: str) -> str:
    return files("qpignn.reports").joinpath("assets", name).read_text(encoding="utf-8")


def _script() -> str:
    """The parts of the script, joined in one scope of their own."""
    parts = "\n".join(_asset(f"{name}.js") for name in SCRIPTS)
    return f'(() => {{\n"use strict";\n\n{parts}}})();\n'


def _policy(style: str, script: str) -> str:
    """Nothing from anywhere, and only the style and the script this page was made with."""
    return (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _digest(words: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(words.encode()).digest()).decode()


def _embedded(content: dict[str, Any]) -> str:
    """JSON in ASCII in which no string can end the script it stands in."""
    form: dict[str, Any] = {"allow_nan": False, "separators": (",", ":")}
    try:
        words = json.dumps(content, **form)
    except ValueError:  # an infinite number: look through all of them, which takes time
        words = json.dumps(json_safe(content), **form)
    return words.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _arrange(parts: list[Section]) -> list[str]:
    """Put calibration and errors, which are small, side by side."""
    small = [part.html for part in parts if part.anchor in ("calibration", "errors")]
    pair = f'<div class="pair">{"".join(small)}</div>'
    arranged = []
    for part in parts:
        if part.html in small:
            arranged += [pair] if part.html == small[0] else []
        else:
            arranged.append(part.html)
    return arranged


def _contents(parts: list[Section]) -> str:
    items = "".join(f'<li><a href="#{part.anchor}">{text(part.title)}</a></li>' for part in parts)
    return f"<ol>{items}</ol>"


def _header(content: dict[str, Any]) -> str:
    verdict = content["verdict"]
    training = [one for one in content["findings"] if one["kind"] == "training"]
    banner = "".join(_banner(one["severity"], one["text"]) for one in training)
    return (
        '<button type="button" id="theme" class="button quiet js-only" aria-pressed="false">'
        "Dark mode</button>"
        f"<h1>{text(content['title'])}</h1>"
        f'<p class="subtitle">{text(content["subtitle"])}</p>'
        f"{banner}{_banner(verdict['severity'], verdict['text'])}"
    )


def _banner(severity: str, words: str) -> str:
    return (
        f'<p class="verdict {severity}">{icon(severity)}<span><strong>{WORDS[severity]}.</strong> '
        f"{sentence(words)}</span></p>"
    )
