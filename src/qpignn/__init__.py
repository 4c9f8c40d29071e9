"""qpignn: calibrated prediction intervals for graphs.

The public names are listed in ``__init__.pyi`` and imported when first used, so that ``import
qpignn`` and the command line's ``--help`` do not wait for torch.
"""

import lazy_loader

from qpignn.deprecated import with_old_names

__version__ = "0.1.0"

_load, _, __all__ = lazy_loader.attach_stub(__name__, __file__)
__getattr__ = with_old_names(__name__, _load)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
