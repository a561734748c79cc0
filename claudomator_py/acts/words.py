"""The tests that patterns apply to words: other machines, files beyond the working directory, branches."""

import posixpath
import re
from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase

from claudomator_py.acts.pattern import UNKNOWN, Call, Test
from claudomator_py.values import dataclass, regex

_LOOPBACK = regex(
    r"localhost|.*\.localhost|127(\.\d{1,3}){0,3}|0|0\.0\.0\.0|\[?::1?\]?|host\.docker\.internal|/.*|@.*", re.IGNORECASE
)
_IN_FILES = regex(r"(?:jdbc:)?(?:sqlite|sqlite3|duckdb|file|h2|docker)(?:\+\w+)?:", re.IGNORECASE)
"""The beginning of the URL of a database in a file or a container."""
_DOMAIN = regex(r"(?:[\w.-]+@)?(?:[\w-]+\.)+[a-z]{2,24}\.?(?::\d+)?(?:[/?#].*)?", re.IGNORECASE)
_ADDRESS = regex(r"(?:[\w.-]+@)?\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?(?:[/?#].*)?")
_COPY = regex(r"(?:[\w.-]+@)?[\w.-]+::?(?!\\)[^:]*|\w+@[\w.-]+")
_CONNECTION = regex(r"(?:^|[\s;?&])(?:host|hostaddr|server|data source)\s*=\s*([^\s;&]+)", re.IGNORECASE)
_TAG = regex(r"(?:refs/tags/.*|v?\d+(?:\.\d+)+\S*)")
_FILES = (
    ".c", ".cfg", ".conf", ".css", ".csv", ".db", ".go", ".gz", ".h", ".hurl", ".html", ".ini", ".java", ".js",
    ".json", ".lock", ".log", ".md", ".php", ".py", ".rb", ".rs", ".sh", ".sql", ".tar", ".toml", ".ts", ".txt",
    ".xml", ".yaml", ".yml", ".zip",
)  # fmt: skip
"""File suffixes that look like top-level domains."""


@dataclass(frozen=True, slots=True)
class Files:
    """Globs for files, folders and branches, from the data."""

    scratch: tuple[str, ...]
    secret: tuple[str, ...]
    public: tuple[str, ...]
    system: tuple[str, ...]
    branches: tuple[str, ...]
    contexts: tuple[str, ...]
    """Contexts of clusters on this machine."""


def is_loopback(host: str, call: Call | None = None) -> bool:
    """Return whether the host is this machine, or a container that the call reaches on it. A socket path and an empty
    string count as such."""
    in_network = call is not None and call.place.in_network and "." not in host and not host.startswith(UNKNOWN)
    return not host or in_network or _LOOPBACK.fullmatch(host) is not None


def host_of(word: str) -> str | None:
    """Return the host of a URL or connection string, or None for any other word."""
    if scheme := re.match(r"(?:jdbc:)?[A-Za-z][A-Za-z0-9+.-]*://", word):
        if _IN_FILES.match(word):
            return ""
        rest = word[scheme.end() :]
        authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
        return _without_port(authority.partition(",")[0])
    if match := _CONNECTION.search(word):
        return host_of(match[1]) or _without_port(match[1])
    return None


def _without_port(authority: str) -> str:
    host = authority.rpartition("@")[2]
    if host.startswith("["):
        return host.partition("]")[0].removeprefix("[")
    return host.partition(":")[0] if host.count(":") == 1 else host


@dataclass(frozen=True, slots=True)
class WordTests:
    """The tests that patterns name in braces. Each returns whether the word passes."""

    files: Files

    def by_name(self) -> Mapping[str, Test]:
        """Return the tests by the names that patterns use."""
        tests = (name for name, value in vars(WordTests).items() if callable(value) and not name.startswith("_"))
        return {name.replace("_", "-"): getattr(self, name) for name in tests if name != "by_name"}

    def any(self, word: str, call: Call) -> bool:
        """Accept every word."""
        return True

    def host(self, word: str, call: Call) -> bool:
        """Return whether the word names another machine."""
        named = host_of(word)
        return bool(word) and not is_loopback(_without_port(word) if named is None else named, call)

    def host_word(self, word: str, call: Call) -> bool:
        """Return whether the word is the first one and names another machine, by its own name for it if need be."""
        outside = replace(call, place=replace(call.place, in_network=False))
        return word == next(iter(call.positionals), None) and self.host(word, outside)

    def away(self, word: str, call: Call) -> bool:
        """Return whether the word is a remote address: a URL, a domain, ``host:path``. Unknown words count as one."""
        named = host_of(word)
        if named is not None:
            return not is_loopback(named, call)
        if word.startswith(UNKNOWN):
            return True
        if word.startswith((".", "/", "~", "-", ":")):
            return False
        is_label = call.program != "rclone" and _LABEL.fullmatch(word)
        is_copy = call.program not in _ADDRESSING and _COPY.fullmatch(word) and not is_label
        if is_copy and not re.match(r"[A-Za-z]:", word):
            return not is_loopback(word.rpartition("@")[2].partition(":")[0])
        return _is_address(word)

    def database_away(self, word: str, call: Call) -> bool:
        """Return whether the word names a remote database by URL, connection string or address. Unknown words count."""
        named = host_of(word)
        if named is not None:
            return not is_loopback(named, call)
        is_named = word.startswith(UNKNOWN) or re.fullmatch(r"[\w.-]+@[\w.-]+(:\d+)?(/.*)?", word) or _is_address(word)
        return bool(is_named) and not is_loopback(_without_port(word.partition("/")[0]), call)

    def outside(self, word: str, call: Call) -> bool:
        """Return whether the word is a path beyond the working directory. Unknown words count as inside."""
        return not word.startswith(UNKNOWN) and not call.place.is_inside(word, self.files.scratch)

    def home(self, word: str, call: Call) -> bool:
        """Return whether the word is the home folder, the root or another top folder."""
        return call.place.is_home(word)

    def system(self, word: str, call: Call) -> bool:
        """Return whether the word is a configuration file of the machine or of the user's programs."""
        return self.outside(word, call) and call.place.is_one_of(word, self.files.system)

    def secret(self, word: str, call: Call) -> bool:
        """Return whether the word is a file with keys or passwords."""
        path = word.removeprefix("@")
        return call.place.is_one_of(path, self.files.secret) and not call.place.is_one_of(path, self.files.public)

    def target_away(self, word: str, call: Call) -> bool:
        """Return whether the command writes to the word, and it is a remote address."""
        return word in _targets(call) and self.away(word, call)

    def target_outside(self, word: str, call: Call) -> bool:
        """Return whether the command writes to the word, and it is outside."""
        return word in _targets(call) and self.outside(word.removeprefix("of="), call)

    def target_system(self, word: str, call: Call) -> bool:
        """Return whether the command writes to the word, and it is a configuration file of the machine."""
        return word in _targets(call) and self.system(word.removeprefix("of="), call)

    def source_outside(self, word: str, call: Call) -> bool:
        """Return whether the command moves the word away, and it is outside."""
        named = [*call.values("-t"), *call.values("--target-directory")]
        return word in (call.positionals if named else call.positionals[:-1]) and self.outside(word, call)

    def edited_outside(self, word: str, call: Call) -> bool:
        """Return whether the command edits the word in place, and it is outside."""
        return word in _edited(call) and self.outside(word, call)

    def edited_system(self, word: str, call: Call) -> bool:
        """Return whether the command edits the word in place, and it is a configuration file of the machine."""
        return word in _edited(call) and self.system(word, call)

    def acting(self, word: str, call: Call) -> bool:
        """Return whether the word is the script being run, and its name does not suggest a build or a test."""
        return word == call.words[0] and not _MAKING.search(posixpath.basename(word).lower())

    def database_url(self, word: str, call: Call) -> bool:
        """Return whether the word is the address of a remote database."""
        if (served := _SERVED.fullmatch(word)) is not None:
            return not is_loopback(served[1], call)
        url = _DATABASE.match(word)
        return url is not None and not is_loopback(host_of(word[url.start("url") :]) or "", call)

    def protected(self, word: str, call: Call) -> bool:
        """Return whether the push goes to a branch that others rely on, or deletes or forces any branch."""
        return any(_is_protected(branch, self.files.branches) for branch in pushed_branches(call))

    def shared(self, word: str, call: Call) -> bool:
        """Return whether the word is the ``push`` of a push to a repository beyond the run's own folders."""
        return word == "push" and not _is_own_remote(call, self.files.scratch)

    def release(self, word: str, call: Call) -> bool:
        """Return whether the push includes a tag."""
        return any(_TAG.fullmatch(_completed(positional)) for positional in call.positionals[2:])

    def cluster_away(self, word: str, call: Call) -> bool:
        """Return whether the word is the first one, and the cluster is not known to be on this machine."""
        if word != next(iter(call.positionals), None):
            return False
        file = call.variables.get("KUBECONFIG") or "~/.kube/config"
        current = _CONTEXT.search(call.place.read(call.place.absolute(file)) or "")
        named = [*call.values("--context"), *call.values("--kube-context")] or ([current[1]] if current else [])
        elsewhere = any(True for option in _OTHER_CLUSTER for _ in call.values(option))
        local = [any(fnmatchcase(context, pattern) for pattern in self.files.contexts) for context in named]
        return elsewhere or not local or not all(local)

    def unread(self, word: str, call: Call) -> bool:
        """Return whether the word is known only when it runs."""
        return word.startswith(UNKNOWN)


_CONTEXT = regex(r"^current-context:\s*[\"']?([^\s\"']+)", re.MULTILINE)
_OTHER_CLUSTER = ("--kubeconfig", "--server", "-s", "--cluster", "--kube-apiserver")
_MAKING = regex(
    r"build|bundle|compile|pack|webpack|vite|rollup|esbuild|test|spec|lint|check|format|fmt|gen|codegen|docs?|dev|serve"
    r"|start|watch|bench|mock|seed|fixture|config|setup|install|analy[sz]e|report|diff|plan|validate|render|export"
)
"""Found in names of scripts that build or inspect something locally, whatever it is for."""
_DATABASE = regex(
    r"(?:--?[\w-]+=|\w+=)?(?P<url>(?:jdbc:)?(?:postgres|postgresql|postgis|mysql|mariadb|mongodb|redis|rediss|mssql|sqlserver|oracle|cockroachdb|clickhouse"
    r"|cassandra|amqps?|elasticsearch|neo4j|bolt)(?:\+[a-z0-9]+)*://)",
    re.IGNORECASE,
)
_SERVED = regex(
    r"(?:--?[\w-]+=)?([\w-]+(?:\.[\w-]+)+):(?:5432|5433|6432|3306|33060|6379|6380|27017|1433|1521|9042|9200|5672|9092|8123|26257)"
)
"""A host with the port of a database or message queue."""
_ADDRESSING = frozenset({"curl", "curlie", "wget", "wget2", "http", "https", "xh", "httpie", "ping", "dig", "whois"})
"""Programs for which a word with a colon is ``host:port``, not ``host:path``."""
_LABEL = regex(r"[a-z]+:[\w.-]+(?:/[\w.-]+)*", re.IGNORECASE)
"""Script names such as ``test:unit``, which are no ``host:path``."""


def _is_address(word: str) -> bool:
    if word.lower().endswith(_FILES) and "/" not in word:
        return False
    match = _DOMAIN.fullmatch(word) or _ADDRESS.fullmatch(word)
    return match is not None and not is_loopback(_without_port(re.split(r"[/?#]", word, maxsplit=1)[0]))


def _targets(call: Call) -> tuple[str, ...]:
    """Return what the command writes to: its last word, also if an option with a value may follow, or an option's
    value; for tee and the like, every word."""
    named = [*call.values("-t"), *call.values("--target-directory")]
    sure = [word for word, may_be_value in call.positions() if not may_be_value]
    if call.program in ("tee", "touch", "mkdir", "truncate"):
        return call.positionals
    if call.program == "dd":
        return tuple(word for word in call.positionals if word.startswith("of="))
    return tuple(named) if any(named) else (*call.positionals[-1:], *sure[-1:])


def _edited(call: Call) -> tuple[str, ...]:
    """Return the files that sed or the like edits in place: its words without the script."""
    scripts = {
        value for option in ("-e", "-f", "--expression", "--file", "-E", "-pe", "-pi") for value in call.values(option)
    }
    words = tuple(word for word in call.positionals if word not in scripts)
    return words if any(word.startswith(("-e", "-f", "--expression", "--file")) for word in call.words) else words[1:]


def pushed_branches(call: Call) -> tuple[str, ...]:
    """Return the branches that a ``git push`` writes to: the current one if it names none, ``?`` if that is unknown. A
    forced (``+``) or deleted (``:name``) branch is returned as ``*``, which is always protected."""
    words = [word for word in call.positionals if word != "push"]
    refs = words[1:]
    if not refs:
        return (_current_branch(call),)
    branches = []
    for ref in refs:
        source, colon, target = ref.partition(":")
        if ref.startswith("+") or (colon and not source):
            branches.append("*")
            continue
        branch = (target if colon else source).removeprefix("refs/heads/")
        branches.append(_current_branch(call) if branch in ("HEAD", "@") else branch)
    return tuple(branches)


_GIT_SETTINGS = ("GIT_DIR", "GIT_CONFIG", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_COUNT")
_REDIRECTED = regex(r"insteadof|^\s*\[include", re.IGNORECASE | re.MULTILINE)
"""In a configuration by which a remote's URL may be another one."""
_REMOTE = regex(r'^\s*\[remote "([^"\n]+)"\]((?:\n(?!\s*\[).*)*)', re.MULTILINE)
_URL = regex(r"^\s*(?:push)?url\s*=\s*(.*?)\s*$", re.MULTILINE | re.IGNORECASE)


def _completed(ref: str) -> str:
    """Return the name with a version in place of its end, if that is known only when it runs: it may be one."""
    return re.sub(rf"{re.escape(UNKNOWN)}.*", "1.0", ref, flags=re.DOTALL)


def _is_protected(branch: str, patterns: tuple[str, ...]) -> bool:
    return (
        branch in ("*", "?")
        or branch.startswith(UNKNOWN)
        or any(fnmatchcase(_completed(branch), pattern) for pattern in patterns)
    )


def _current_branch(call: Call) -> str:
    """Return the branch checked out where the command runs, or ``?`` if that cannot be read."""
    return (_of_repository(call, "HEAD") or "?").strip().removeprefix("ref: refs/heads/")


def _is_own_remote(call: Call, scratch: tuple[str, ...]) -> bool:
    """Return whether all that the push may go to are repositories in the run's own folders, according to the
    configuration that can be read."""
    if any(call.values("-c")) or any(call.values("--repo")) or any(name in call.variables for name in _GIT_SETTINGS):
        return False
    named = next((word for word in call.positionals if word != "push"), None)
    if named is not None and named.startswith(("/", "./", "../", "~/", "file:///")):
        return call.place.is_inside(named.removeprefix("file://"), scratch)
    config = _of_repository(call, "config") or ""
    if _REDIRECTED.search(config + (call.place.read(call.place.absolute("~/.gitconfig")) or "")):
        return False
    sections = [match[2] for match in _REMOTE.finditer(config) if named in (None, match[1])]
    urls = [match[1] for section in sections for match in _URL.finditer(section)]
    return bool(urls) and all(url.startswith("/") and call.place.is_inside(url, scratch) for url in urls)


def _of_repository(call: Call, name: str) -> str | None:
    """Return the text of ``HEAD`` or ``config`` of the repository in which git is called, or None if it cannot be
    read."""
    folder, read = call.place.absolute(next(iter(call.values("-C")), ".")), call.place.read
    while True:
        prefix = folder.rstrip("/")
        text = read(f"{prefix}/.git/{name}")
        if text is None and (link := read(f"{prefix}/.git")) is not None and link.startswith("gitdir:"):
            linked = call.place.absolute(link[7:].strip())
            text = read(f"{linked if name == 'HEAD' else linked.partition('/worktrees/')[0]}/{name}")
        if text is not None or not prefix or "/" not in prefix:
            return text
        folder = prefix.rpartition("/")[0] or "/"
