"""What words of commands mean: other machines, files beyond the working directory, branches. The tests of patterns."""

import posixpath
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase

from claudomator_py.acts.pattern import UNKNOWN, Call, Test
from claudomator_py.values import dataclass, regex

_LOOPBACK = regex(
    r"localhost|.*\.localhost|127(\.\d{1,3}){0,3}|0|0\.0\.0\.0|\[?::1?\]?|host\.docker\.internal|/.*|@.*", re.IGNORECASE
)
_DOMAIN = regex(r"(?:[\w.-]+@)?(?:[\w-]+\.)+[a-z]{2,24}\.?(?::\d+)?(?:[/?#].*)?", re.IGNORECASE)
_ADDRESS = regex(r"(?:[\w.-]+@)?\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?(?:[/?#].*)?")
_COPY = regex(r"(?:[\w.-]+@)?[\w.-]+::?(?!\\)[^:]*|\w+@[\w.-]+")
_CONNECTION = regex(r"(?:^|[\s;?&])(?:host|hostaddr|server|data source)\s*=\s*([^\s;&]+)", re.IGNORECASE)
_TAG = regex(r"(?:refs/tags/.*|v?\d+(?:\.\d+)+\S*)")
_FILES = (
    *(".c", ".cfg", ".conf", ".css", ".csv", ".go", ".gz", ".h", ".html", ".ini", ".java", ".js", ".json", ".lock"),
    *(".log", ".md", ".php", ".py", ".rb", ".rs", ".sh", ".sql", ".tar", ".toml", ".ts", ".txt", ".xml", ".yaml"),
    *(".yml", ".zip"),
)
"""Ends of file names that are no domains, though they look like some."""


@dataclass(frozen=True, slots=True)
class Files:
    """The lists of files, folders and branches in the data."""

    scratch: tuple[str, ...]
    secret: tuple[str, ...]
    public: tuple[str, ...]
    system: tuple[str, ...]
    branches: tuple[str, ...]


def is_loopback(host: str) -> bool:
    """Return whether the name or address is this machine's own; so is a socket's path, and nothing."""
    return not host or _LOOPBACK.fullmatch(host) is not None


def host_of(word: str) -> str | None:
    """Return the host that a URL, ``user@host:path``, connection string or domain names; None: it names none."""
    if scheme := re.match(r"(?:jdbc:)?[A-Za-z][A-Za-z0-9+.-]*://", word):
        rest = word[scheme.end() :]
        authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
        return _without_port(authority.partition(",")[0])
    if found := _CONNECTION.search(word):
        return found[1]
    return None


def _without_port(authority: str) -> str:
    host = authority.rpartition("@")[2]
    if host.startswith("["):
        return host.partition("]")[0].removeprefix("[")
    return host.partition(":")[0] if host.count(":") == 1 else host


@dataclass(frozen=True, slots=True)
class WordTests:
    """The tests that patterns name in braces, with the lists of the data. Each says whether it holds of a word."""

    files: Files

    def by_name(self) -> Mapping[str, Test]:
        """Return them by the names that patterns give them."""
        return {
            "any": self.any,
            "host": self.host,
            "host-word": self.host_word,
            "away": self.away,
            "database-away": self.database_away,
            "outside": self.outside,
            "home": self.home,
            "system": self.system,
            "secret": self.secret,
            "target-away": self.target_away,
            "target-outside": self.target_outside,
            "target-system": self.target_system,
            "source-outside": self.source_outside,
            "edited-outside": self.edited_outside,
            "edited-system": self.edited_system,
            "acting": self.acting,
            "database-url": self.database_url,
            "protected": self.protected,
            "release": self.release,
            "unread": self.unread,
        }

    def any(self, word: str, call: Call) -> bool:
        """Return whether there is a word."""
        return True

    def host(self, word: str, call: Call) -> bool:
        """Return whether it names another machine."""
        named = host_of(word)
        return bool(word) and not is_loopback(_without_port(word) if named is None else named)

    def host_word(self, word: str, call: Call) -> bool:
        """Return whether it is the first word, and names another machine."""
        return word == next(iter(call.positionals), None) and self.host(word, call)

    def away(self, word: str, call: Call) -> bool:
        """Return whether it is an address elsewhere: a URL, a domain, ``host:path``; one that is not known is."""
        named = host_of(word)
        if named is not None:
            return not is_loopback(named)
        if word.startswith(UNKNOWN):
            return True
        if word.startswith((".", "/", "~", "-", ":")):
            return False
        is_copy = call.program not in _ADDRESSING and _COPY.fullmatch(word) and not _LABEL.fullmatch(word)
        if is_copy and not re.match(r"[A-Za-z]:", word):
            return not is_loopback(word.rpartition("@")[2].partition(":")[0])
        return _is_address(word)

    def database_away(self, word: str, call: Call) -> bool:
        """Return whether it names a database elsewhere: a URL, a connection string; one that is not known is."""
        named = host_of(word)
        if named is not None:
            return not is_loopback(named)
        is_named = word.startswith(UNKNOWN) or re.fullmatch(r"[\w.-]+@[\w.-]+(:\d+)?(/.*)?", word) or _is_address(word)
        return bool(is_named) and not is_loopback(_without_port(word.partition("/")[0]))

    def outside(self, word: str, call: Call) -> bool:
        """Return whether it is a path beyond the working directory. One that is not known counts as within."""
        return not word.startswith(UNKNOWN) and not call.place.is_inside(word, self.files.scratch)

    def home(self, word: str, call: Call) -> bool:
        """Return whether it is the home folder, or the root."""
        return call.place.is_home(word)

    def system(self, word: str, call: Call) -> bool:
        """Return whether it is a file that the machine, or the user's programs, obey."""
        return self.outside(word, call) and call.place.is_one_of(word, self.files.system)

    def secret(self, word: str, call: Call) -> bool:
        """Return whether it is a file with keys or passwords."""
        path = word.removeprefix("@")
        return call.place.is_one_of(path, self.files.secret) and not call.place.is_one_of(path, self.files.public)

    def target_away(self, word: str, call: Call) -> bool:
        """Return whether that is what the command writes to, and on another machine."""
        return word in _targets(call) and self.away(word, call)

    def target_outside(self, word: str, call: Call) -> bool:
        """Return whether that is what the command writes to, and outside."""
        return word in _targets(call) and self.outside(word.removeprefix("of="), call)

    def target_system(self, word: str, call: Call) -> bool:
        """Return whether that is what the command writes to, and a file that the machine obeys."""
        return word in _targets(call) and self.system(word.removeprefix("of="), call)

    def source_outside(self, word: str, call: Call) -> bool:
        """Return whether that is what the command takes away, and outside."""
        named = [*call.values("-t"), *call.values("--target-directory")]
        return word in (call.positionals if named else call.positionals[:-1]) and self.outside(word, call)

    def edited_outside(self, word: str, call: Call) -> bool:
        """Return whether it is a file that is edited in place, and outside."""
        return word in _edited(call) and self.outside(word, call)

    def edited_system(self, word: str, call: Call) -> bool:
        """Return whether it is a file that is edited in place, and one that the machine obeys."""
        return word in _edited(call) and self.system(word, call)

    def acting(self, word: str, call: Call) -> bool:
        """Return whether it is the script that runs, and its name does not say that it builds or tests."""
        return word == call.words[0] and not _MAKING.search(posixpath.basename(word).lower())

    def database_url(self, word: str, call: Call) -> bool:
        """Return whether it is the address of a database elsewhere."""
        if (served := _SERVED.fullmatch(word)) is not None:
            return not is_loopback(served[1])
        return _DATABASE.match(word) is not None and not is_loopback(host_of(word) or "")

    def protected(self, word: str, call: Call) -> bool:
        """Return whether the push goes to a branch on which others rely, or deletes or forces one."""
        return any(_is_protected(branch, self.files.branches) for branch in pushed_branches(call))

    def release(self, word: str, call: Call) -> bool:
        """Return whether the push is of a tag."""
        return any(_TAG.fullmatch(one) for one in call.positionals[2:])

    def unread(self, word: str, call: Call) -> bool:
        """Return whether only the run will know it."""
        return word.startswith(UNKNOWN)


_MAKING = regex(
    r"build|bundle|compile|pack|webpack|vite|rollup|esbuild|test|spec|lint|check|format|fmt|gen|codegen|docs?|dev|serve"
    r"|start|watch|bench|mock|seed|fixture|config|setup|install|analy[sz]e|report|diff|plan|validate|render|export"
)
"""In names of scripts that make or look at something here, whatever they make it for."""
_DATABASE = regex(
    r"(?:jdbc:)?(?:postgres|postgresql|postgis|mysql|mariadb|mongodb|redis|rediss|mssql|sqlserver|oracle|cockroachdb|clickhouse"
    r"|cassandra|amqps?|elasticsearch|neo4j|bolt)(?:\+[a-z0-9]+)*://",
    re.IGNORECASE,
)
_SERVED = regex(
    r"(?:--?[\w-]+=)?([\w-]+(?:\.[\w-]+)+):(?:5432|5433|6432|3306|33060|6379|6380|27017|1433|1521|9042|9200|5672|9092|8123|26257)"
)
"""A host with the port of a database, or of a queue."""
_ADDRESSING = frozenset({"curl", "curlie", "wget", "wget2", "http", "https", "xh", "httpie", "ping", "dig", "whois"})
"""Programs whose words with a colon are a host and its port."""
_LABEL = regex(r"[a-z]+:[\w.-]+(?:/[\w.-]+)*", re.IGNORECASE)
"""Words such as ``test:unit``, which name no machine."""


def _is_address(word: str) -> bool:
    if word.lower().endswith(_FILES) and "/" not in word:
        return False
    found = _DOMAIN.fullmatch(word) or _ADDRESS.fullmatch(word)
    return found is not None and not is_loopback(_without_port(re.split(r"[/?#]", word, maxsplit=1)[0]))


def _targets(call: Call) -> tuple[str, ...]:
    """What such a command writes to: the last word, or what an option names; all words of those that only write."""
    named = [*call.values("-t"), *call.values("--target-directory")]
    if call.program in ("tee", "touch", "mkdir", "truncate"):
        return call.positionals
    if call.program == "dd":
        return tuple(word for word in call.positionals if word.startswith("of="))
    return tuple(named) if any(named) else call.positionals[-1:]


def _edited(call: Call) -> tuple[str, ...]:
    """The files that an editor such as sed edits in place: its words, without what it is to do there."""
    said = {
        value for option in ("-e", "-f", "--expression", "--file", "-E", "-pe", "-pi") for value in call.values(option)
    }
    words = tuple(word for word in call.positionals if word not in said)
    return words if any(word.startswith(("-e", "-f", "--expression", "--file")) for word in call.words) else words[1:]


def pushed_branches(call: Call) -> tuple[str, ...]:
    """Return the branches that a ``git push`` writes to; the current one where it names none. ``?``: not known.

    What is forced (``+``) or deleted (``:name``) is the protected branch ``*``.
    """
    words = [word for word in call.positionals if word != "push"]
    refs = words[1:]
    if not refs:
        return (_current_branch(call),)
    found = []
    for ref in refs:
        source, colon, target = ref.partition(":")
        if ref.startswith("+") or (colon and not source):
            found.append("*")
            continue
        branch = (target if colon else source).removeprefix("refs/heads/")
        found.append(_current_branch(call) if branch in ("HEAD", "@") else branch)
    return tuple(found)


def _is_protected(branch: str, patterns: tuple[str, ...]) -> bool:
    return branch in ("*", "?") or branch.startswith(UNKNOWN) or any(fnmatchcase(branch, one) for one in patterns)


def _current_branch(call: Call) -> str:
    """The branch that is checked out where the command runs; ``?``: that cannot be read."""
    folder = call.place.absolute(next(iter(call.values("-C")), "."))
    while True:
        prefix = folder.rstrip("/")
        head = call.place.read(f"{prefix}/.git/HEAD")
        if head is None and (link := call.place.read(f"{prefix}/.git")) is not None and link.startswith("gitdir:"):
            head = call.place.read(f"{call.place.absolute(link[7:].strip())}/HEAD")
        if head is not None:
            return head.strip().removeprefix("ref: refs/heads/")
        if not prefix or "/" not in prefix:
            return "?"
        folder = prefix.rpartition("/")[0] or "/"
