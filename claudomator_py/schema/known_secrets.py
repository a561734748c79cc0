"""Which values are secrets: told by the names of variables and options, and by what the configuration says of them."""

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
# A number or the bare address of a service: shown everywhere, and known to everybody.
_PLAIN_VALUE = regex(r"[\d.,:]+|https?://[^/@?#\s]+(?:/v\d+\w*)?/?")
_OPTION = regex(r"--?(?P<name>[A-Za-z][\w-]*)(?:=(?P<value>.+))?", re.DOTALL)
_PASSWORD = regex(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s/@:]*:([^\s/]+)@")
_QUOTED = regex(rb"%([0-9A-Fa-f]{2})")
_LONG_TAIL = 16


def is_secret_name(name: str) -> bool:
    """Return whether the value of a variable, or of an option, of that name is taken for a secret."""
    return _SECRET_NAME.search(name) is not None


def secrets_in(environ: Mapping[str, str]) -> set[str]:
    """Return the values of variables that are named like secrets, and the passwords of URLs in any of them."""
    named = {value for name, value in environ.items() if is_secret_name(name) and not _is_plain(name, value)}
    return named.union(*map(_passwords, environ.values()))


def secrets_of(settings: Settings, agents: Iterable[AgentSpec], environ: Mapping[str, str]) -> set[str]:
    """Return all that the configuration and the daemon's variables tell. agents: the configured ones, or those
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
    """Whether it only says where something is, or how much."""
    if value.startswith("/") and "\n" not in value:
        return _PLACE_NAME.search(name) is not None or not any(map(_looks_random, value.split("/")))
    return _PLAIN_VALUE.fullmatch(value) is not None


def _looks_random(text: str) -> bool:
    """Whether it is no name that a person gives to a file: one in 64 keys in Base64 begins like a path."""
    return len(text) >= _LONG_TAIL and all(any(map(kind, text)) for kind in (str.isdigit, str.isupper, str.islower))


def _passwords(url: str) -> set[str]:
    """The password in the URL as it is written, and as it is meant."""
    found = _PASSWORD.match(url.strip())
    return set() if found is None else {found[1], _unquoted(found[1])}


def _unquoted(text: str) -> str:
    return _QUOTED.sub(lambda code: bytes([int(code[1], 16)]), text.encode()).decode(errors="replace")


def _parts(url: str) -> Iterator[str]:
    """A URL that posts to somebody, and what of it is not the service's own address."""
    if _PLAIN_VALUE.fullmatch(url):
        return
    yield url
    _, _, tail = url.partition("://")[2].partition("/")
    if len(tail) >= _LONG_TAIL:
        yield tail
    yield from _passwords(url)


def _in_headers(text: str) -> Iterator[str]:
    """The values of headers as OpenTelemetry has them in a variable, as they are written and as they are sent; of one
    that begins with a scheme, also what comes after it."""
    for pair in text.split(","):
        value = pair.partition("=")[2].strip()
        yield from (value, _unquoted(value), *_unquoted(value).split(" ", 1)[1:])


def _in_options(words: Sequence[str]) -> Iterator[str]:
    """The values of options that are named like secrets: ``--token=it``, or ``--token it``."""
    for position, word in enumerate(words):
        option = _OPTION.fullmatch(word)
        if option is None or not is_secret_name(option["name"]):
            continue
        following = words[position + 1 : position + 2]
        value = option["value"] or (following[0] if following and not following[0].startswith("-") else "")
        if value and not _is_plain(option["name"], value):
            yield value
