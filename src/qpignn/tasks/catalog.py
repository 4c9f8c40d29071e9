"""Tasks by name."""

from __future__ import annotations

from typing import Literal, get_args

from qpignn.errors import check_choice
from qpignn.tasks.base import Task
from qpignn.tasks.node import NodeTask

TaskName = Literal["node"]
TASKS: dict[str, Task] = dict(zip(get_args(TaskName), (NodeTask(),), strict=True))


def find_task(name: str) -> Task:
    """Return a task by its name.

    Args:
        name: one of :data:`TASKS`.

    Raises:
        UnknownNameError: if there is no such task.
    """
    return TASKS[check_choice("task", name, TASKS)]
