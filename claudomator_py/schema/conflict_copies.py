"""Names that synchronisers and merge tools give to a second version of a file, which must not run in addition to the
first.

Names that people also choose are not included: ``plan (1)``, ``plan 2``, ``plan - copy`` and ``plan-HOST``, as used by
Google Drive, iCloud and OneDrive, do not imply a conflict, unless the host name was made up by Windows; and
``db.backup`` may be a task.
"""

import re
import unicodedata
from functools import cache
from typing import Final

from claudomator_py.domain.errors import Problem, shown
from claudomator_py.values import dataclass, regex

_CONFLICT: Final = unicodedata.normalize(
    "NFKC",
    "conflict|conflit|konflik|конфл|競合|衝突|冲突|충돌|çak|ristiriit|ütköz|σύγκρουσ|διένεξ|xung đột"
    "|ขัดแย้ง|विवाद|تعارض|מתנגש",
)
"""Parts of words for a conflict, each from one or several languages."""
_COPY: Final = unicodedata.normalize(
    "NFKC",
    "copy|kopi|copi|cópi|копи|копі|コピー|副本|複本|사본|kopya|másol|αντίγραφ|exempla|salinan|bản sao"
    "|สำเนา|प्रति|نسخة|עותק",
)
"""Parts of words for a copy."""
_DATE: Final = r"\d{4}[-_.]?\d{2}[-_.]?\d{2}"


@dataclass(frozen=True, slots=True)
class ConflictName:
    """How some programs name a second version.

    program: name for people. pattern: what is added to the name, searched for in the name without its suffix. example:
    such a name, without suffix. other: a similar name that does not match.
    """

    program: str
    pattern: re.Pattern[str]
    example: str
    other: str


CONFLICT_NAMES: Final = (
    ConflictName(
        "Syncthing",
        regex(r"\.sync-conflict-\d{8}-\d{6}(?:-\w+)?"),
        "plan.sync-conflict-20261127-092733-ABCDEFG",
        "plan.sync-conflict",
    ),
    ConflictName("Syncthing's versioning", regex(r"~\d{8}-\d{6}$"), "plan~20261127-092733", "plan~2"),
    ConflictName(
        "a synchroniser such as Dropbox or Nextcloud",
        regex(rf"\s*\((?=[^()]*(?:{_CONFLICT}))(?=[^()]*(?:{_COPY}))[^()]*\)", re.IGNORECASE),
        "plan (Ann's conflicted copy 2026-11-27)",
        "plan (copy)",
    ),
    ConflictName(
        "a synchroniser such as Dropbox",
        regex(
            rf"[\s_.-]+(?:\S+['\N{{RIGHT SINGLE QUOTATION MARK}}]s\s+)?conflicted[ _-]copy[ _-]{_DATE}.*$",
            re.IGNORECASE,
        ),
        "plan - Ann's conflicted copy 2026-11-27",
        "plan - conflicted copy",
    ),
    ConflictName(
        "a synchroniser such as Seafile or Unison",
        regex(rf"\s*\((?=[^()]*(?:{_CONFLICT}))(?=[^()]*{_DATE})[^()]*\)", re.IGNORECASE),
        "plan (SFConflict ann@example.com 2026-11-27-09-27-33)",
        "plan (merge conflict)",
    ),
    ConflictName(
        "a synchroniser that found names of one spelling",
        regex(
            r"\s*\((?:[^()]*\s)?(?:case|white ?space|unicode encoding|selective sync) (?:conflict|clash)\b.*\)",
            re.IGNORECASE,
        ),
        "plan (Case Conflict 1)",
        "plan (conflict of interest)",
    ),
    ConflictName(
        "Proton Drive", regex(r"\s*\(# Name clash [^()]*#\)"), "plan (# Name clash 2026-11-27 aB3 #)", "plan (# 3)"
    ),
    ConflictName(
        "a synchroniser such as pCloud",
        regex(r"\s*\[conflict(?:ed)?(?: \d[^\]]*)?\]", re.IGNORECASE),
        "plan [conflicted 2]",
        "plan [2]",
    ),
    ConflictName(
        "a synchroniser such as ownCloud or Nextcloud",
        regex(rf"[._ -]conflict(?:ed)?[._ -]{_DATE}[-_ ]\d{{4,6}}(?:-\d+)?|_{_DATE}_conflict(?:ed)?$", re.IGNORECASE),
        "plan_conflict-20261127-092733",
        "plan_conflict-2026",
    ),
    ConflictName(
        "Synology Drive",
        regex(r"_[^_]+_[A-Z][a-z]{2}-\d{2}-\d{4,6}-\d{4}_[A-Za-z]*Conflict(?:_\d+)?$"),
        "plan_Andy-PC_Jan-03-0901-2013_CaseConflict_1",
        "plan_MergeConflict",
    ),
    ConflictName(
        "OneDrive",
        regex(r"-(?:DESKTOP|LAPTOP|WIN)-[A-Z0-9]{6,12}(?:-\d+)?$"),
        "plan-DESKTOP-4F7K2QX",
        "plan-desktop-settings",
    ),
    ConflictName("Resilio Sync", regex(r"(?:\.Conflict\d*)+$"), "plan.Conflict", "plan.conflict"),
    ConflictName("rclone", regex(r"(?:\.conflict\d+|\.\.path[12])$"), "plan.conflict1", "plan.path1"),
    ConflictName("git mergetool", regex(r"[._](?:BACKUP|BASE|LOCAL|REMOTE)[._]\d+$"), "plan_LOCAL_123", "plan_LOCAL"),
    ConflictName(
        "a merge tool, patch or an editor",
        regex(r"(?<=.)\.(?:orig|rej|bak)\d*$", re.IGNORECASE),
        "plan.orig",
        "plan.original",
    ),
    ConflictName("a merge tool", regex(r"(?<=.)\.(?:BASE|LOCAL|REMOTE|BACKUP)$"), "plan.BASE", "plan.base"),
    ConflictName(
        "Subversion",
        regex(r"(?<=.)\.merge-(?:left|right)\.r\d+$"),
        "plan.merge-left.r12",
        "plan.merge-left",
    ),
    ConflictName(
        "a package manager",
        regex(r"(?<=.)\.(?:dpkg-(?:old|new|dist|tmp)|ucf-(?:old|new|dist)|rpm(?:new|save|orig)|pacnew|pacsave)$"),
        "plan.dpkg-old",
        "plan.dpkg",
    ),
    ConflictName("an editor", regex(r"(?<=.)(?:~|\.sw[a-p])$"), "plan~", "plan-"),
)
"""In the order in which they are tried."""


@cache
def _any() -> re.Pattern[str]:
    """What finds all that one of them finds, in one go, as nearly no file is named like these."""
    return re.compile("|".join(f"(?:{name.pattern.pattern})" for name in CONFLICT_NAMES), re.IGNORECASE)


def conflict_problem(filename: str) -> Problem | None:
    """Return the refusal of a file whose name marks it as a second version; None for any other. filename: without
    folders."""
    # Full-width brackets, and letters written in composed or decomposed form, count as the usual ones.
    stem, dot, suffix = unicodedata.normalize("NFKC", filename).rpartition(".")
    if _any().search(stem) is None:
        return None
    for name in CONFLICT_NAMES:
        if found := name.pattern.search(stem):
            original = f"{stem[: found.start()]}{stem[found.end() :]}{dot}{suffix}"
            message = f"is named like a second version of `{shown(original)}` that {name.program} left"
            remedy = (
                "keep the right one under its own name and delete the other, or rename this to have it read as well"
            )
            return Problem(message=message, remedy=remedy)
    return None
