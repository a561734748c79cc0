"""Entity tags: a task's version on the way out, If-Match on the way in."""

import re
from typing import Annotated

from fastapi import Depends, Header, Response

from claudomator_py.core.views import TaskView
from claudomator_py.web.problem import Refused

_TAG = re.compile(r'"([0-9]{1,18})"', re.ASCII)


def set_etag(response: Response, task: TaskView) -> None:
    """Let the response carry the task's version."""
    response.headers["ETag"] = f'"{task.version}"'


def _if_match(
    if_match: Annotated[str | None, Header(max_length=200, description="The ETag last seen.")] = None,
) -> int | None:
    if if_match is None or if_match.strip() == "*":
        return None
    if match := _TAG.fullmatch(if_match.strip()):
        return int(match[1])
    raise Refused(
        412, "stale_version", "If-Match is not the version of this task.", 'Send one ETag as it was given, such as "3".'
    )


IfMatch = Annotated[int | None, Depends(_if_match)]
