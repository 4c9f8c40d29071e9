"""How the reference reads docstrings: examples as code, roles as links."""

import re
from typing import Any

from griffe import Extension, Object

ROLE = re.compile(r":(?:class|func|meth|mod|attr):`~?([^`]+)`")
LINK = r'<autoref optional identifier="\1"><code>\1</code></autoref>'


class Docstrings(Extension):
    """Say things the way mkdocstrings understands them."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Turn ``Example:`` into its section and roles into links, where there is a page."""
        if obj.docstring is not None:
            words = re.sub(r"^Example:$", "Examples:", obj.docstring.value, flags=re.MULTILINE)
            obj.docstring.value = ROLE.sub(LINK, words)
