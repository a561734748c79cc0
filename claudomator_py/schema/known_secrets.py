"""Which values are secrets, judging by names of variables and options and by their use in the configuration."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from claudomator_py.domain.agent import AgentSpec
from claudomator_py.schema.settings import Settings
from claudomator_py.values import regex

_SECRET_NAME = regex(
    r"KEY(?!BOARD|WORD|MAP)|TOKEN(?!IZ)|SECRET|PASSWORD|PASSWD|PASSPHRASE|(?<![A-Z])PASS(?![A-Z])|(?<=_)PWD|DBPASS"
    r"|CREDENTIAL|COOKIE|AUTH(?!OR(?!I))|DSN|JWT|BEARER|WEBHOOK|HEADERS|(?<![A-Z])PAT(?![A-Z])",
    re.IGNORECASE,
)
_PLACE_NAME = regex(r"_(?:FILE|PATH|DIR|DIRECTORY|SOCK|SOCKET|HOME)\Z", re.IGNORECASE)
# A number or the bare address of a service: shown everywhere, and public.
_PLAIN_VALUE = regex(r"[\d.,:]+|https?://[^/@?#\s]+(?:/v\d+\w*)?/?")
_OPTION = regex(r"--?(?P<name>[A-Za-z][\w-]*)(?:=(?P<value>.+))?", re.DOTALL)
_PASSWORD = regex(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s/@:]*:([^\s/]+)@")
_QUOTED = regex(rb"%([0-9A-Fa-f]{2})")
_LONG_TAIL = 16


def is_secret_name(name: str) -> bool:
    """Return whether the value of a variable or an option with that name is treated as a secret."""
    return _SECRET_NAME.search(name) is not None


def secrets_in(environ: Mapping[str, str]) -> set[str]:
    """Return the values of variables whose names suggest secrets, and the passwords in any variable's URL."""
    named = {value for name, value in environ.items() if is_secret_name(name) and not _is_plain(name, value)}
    return named.union(*map(_passwords, environ.values()))


def secrets_of(settings: Settings, agents: Iterable[AgentSpec], environ: Mapping[str, str]) -> set[str]:
    """Return all secrets in the configuration and the daemon's variables. agents: the configured ones, or those
    detected."""
    agents, targets = list(agents), list(settings.notify.values())
    handed_on = {name for agent in agents for name in agent.pass_env} | {settings.classifier.key_variable or ""}
    handed_on |= {settings.routing.encoder.key_variable or ""}
    handed_on |= {name for target in targets for name in (target.url_env, target.secret_env) if name is not None}
    handed_on |= {settings.telemetry.headers_env or ""}
    passed = {name: environ[name] for name in handed_on if name in environ}
    values = {value for name, value in passed.items() if not _is_plain(name, value)} | secrets_in(environ)
    for agent in agents:
        values |= secrets_in(agent.env)
    values |= set(_in_headers(environ.get(settings.telemetry.headers_env or "", "")))
    urls = [*(target.url for target in targets), *(environ.get(target.url_env or "") for target in targets)]
    values |= {part for url in urls if url is not None for part in _parts(url)}
    for url in (settings.database, settings.classifier.base_url, settings.routing.encoder.base_url):
        values |= _passwords(url or "")
    commands = [words for agent in agents for words in (agent.command, agent.extra_args)]
    for words in (*commands, settings.classifier.command, *(target.command for target in targets)):
        values |= set(_in_options(words))
    return values - {""}


def _is_plain(name: str, value: str) -> bool:
    """True if the value only gives a location or an amount."""
    if value.startswith("/") and "\n" not in value:
        return _PLACE_NAME.search(name) is not None or not any(map(_looks_random, value.split("/")))
    return _PLAIN_VALUE.fullmatch(value) is not None


def _looks_random(text: str) -> bool:
    """True if the text does not look like a file name chosen by a person: one in 64 Base64 keys begins like a path."""
    return len(text) >= _LONG_TAIL and all(any(map(kind, text)) for kind in (str.isdigit, str.isupper, str.islower))


def _passwords(url: str) -> set[str]:
    """The password in the URL, as written and decoded."""
    match = _PASSWORD.match(url.strip())
    return set() if match is None else {match[1], _unquoted(match[1])}


def _unquoted(text: str) -> str:
    return _QUOTED.sub(lambda code: bytes([int(code[1], 16)]), text.encode()).decode(errors="replace")


def _parts(url: str) -> Iterator[str]:
    """A notification URL, and the parts of it other than the service's own address."""
    if _PLAIN_VALUE.fullmatch(url):
        return
    yield url
    _, _, tail = url.partition("://")[2].partition("/")
    if len(tail) >= _LONG_TAIL:
        yield tail
    yield from _passwords(url)


def _in_headers(text: str) -> Iterator[str]:
    """The values of headers in OpenTelemetry's format for variables, as written and decoded; if one begins with a
    scheme, also what follows it."""
    for pair in text.split(","):
        value = pair.partition("=")[2].strip()
        yield from (value, _unquoted(value), *_unquoted(value).split(" ", 1)[1:])


def _in_options(words: Sequence[str]) -> Iterator[str]:
    """The values of options whose names suggest secrets: ``--token=it``, or ``--token it``."""
    for position, word in enumerate(words):
        option = _OPTION.fullmatch(word)
        if option is None or not is_secret_name(option["name"]):
            continue
        following = words[position + 1 : position + 2]
        value = option["value"] or (following[0] if following and not following[0].startswith("-") else "")
        if value and not _is_plain(option["name"], value):
            yield value
