"""Extension of griffe that converts docstrings: examples to code, roles to links."""

import re
from typing import Any

from griffe import Extension, Object

ROLE = re.compile(r":(?:class|func|meth|mod|attr):`~?([^`]+)`")
LINK = r'<autoref optional identifier="\1"><code>\1</code></autoref>'


class Docstrings(Extension):
    """Convert docstrings to the form that mkdocstrings understands."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Turn ``Example:`` into its section, and roles into links where there is a page.

        Args:
            obj: the object whose docstring is converted.
        """
        if obj.docstring is not None:
            text = re.sub(r"^Example:$", "Examples:", obj.docstring.value, flags=re.MULTILINE)
            obj.docstring.value = ROLE.sub(LINK, text)
