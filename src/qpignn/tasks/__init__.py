"""Tasks: what a unit is, that is, a row that has a target and gets an interval."""

from qpignn.tasks.base import FitInputs, Task
from qpignn.tasks.catalog import TASKS, TaskName, find_task
from qpignn.tasks.node import NodeTask

__all__ = ["TASKS", "FitInputs", "NodeTask", "Task", "TaskName", "find_task"]
