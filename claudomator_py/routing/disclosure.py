"""What of an order would take secrets or people's data out of where they belong.

Programs handle passwords, keys and addresses all day, and send them to the servers that need them. What is held is that
they are gathered, and go to somebody: to a person, into a log, to a place where files are dropped.
"""

import re
from collections.abc import Iterator
from typing import Final

from claudomator_py.routing.orders import Wants, clauses, whole_words
from claudomator_py.routing.prefilter import prefiltered

_SECRETS: Final = (
    r"(?:(?:api|access|private|signing|ssh|secret|encryption|deploy) ?keys?|keys|credentials|secrets|passwords?"
    r"|password hashes|tokens|cookies|session ids?|certificates|env(?:ironment)? variables|wallets?|seed phrases?"
    r"|key ?chains?|card (?:numbers?|data|details)|id_rsa|kubeconfigs?|env files?|aws|ssh|netrc|pgpass)"
)
_PERSONAL: Final = (
    r"(?:(?:customer|user|client|employee|patient|member|subscriber|staff|personal|salary|payroll"
    r"|medical)s?['\u2019]?s?"
    r" (?:[\w-]+ ){0,2}?(?:addresses|data|lists?|records|details|photos|pictures|scans|table|database|mails"
    r"|numbers|spreadsheet|files?|names"
    r"|histor(?:y|ies))|salar(?:y|ies)|(?:unreleased|internal|confidential|proprietary|decrypted) (?:source|code"
    r"|reports?|documents?|figures"
    r"|roadmap|data|vault|\w+ report)|(?:addresses|phone numbers|names|salaries|records|data|details|photos"
    r"|pictures) of (?:the |our "
    r"|all |every )*(?:customers?|users?|clients?|employees?|patients?|members?|subscribers?|staff|colleagues))"
)
_ALL: Final = r"(?:all|every|each|any|whatever|the|their|our|my|its|contents? of)"
_CARRIES: Final = (
    r"(?:cop(?:y|ies)|sends?|uploads?|posts?|(?:e-?)?mails?|forwards?|push(?:es)?|pastes?|dumps?|exports?"
    r"|publish(?:es)?"
    r"|prints?|echo(?:es)?|put|move|leaks?|shares?|hand|give|drop|ship|sync|texts?|slack|transfer|smuggle|tunnel"
    r"|beam|stream|post|pass|write|zip|tar|pack|archive|encode|attach|read|show|get|gather|collect|grab|harvest|dig)"
)
_TO_SOMEBODY: Final = (
    r"(?:(?:to|at|on|into|onto|in|with|via|through|over to)\s+(?:a |an |the |my |our )?(?:"
    r"https?://(?!localhost|127\.|\[::1)\S+|\d{1,3}(?:\.\d{1,3}){3}|[\w.+%-]+@[\w-]+(?:\.[\w-]+)+|[\w-]+(?:\.[\w-]+)+"
    r"(?=[\s.,;]|$)|(?:[\w-]+ ){0,3}?(?:pastebin|paste|gist|file ?drop|drop ?box|telegram|discord|partners?|agency"
    r"|journalist|competitor|friend|freelancer|contractor|vendor|supplier|recruiter|broker|advertis\w+|insurer|forum"
    r"|public|internet|slack|chat|cdn|outside|third part(?:y|ies)|stick|usb \w+|personal \w+|private \w+|home \w+"
    r"|bots?|channel|webhook))"
    r"|(?:mail|send|text|slack|show|give|get|hand|forward|pass|message) (?:me|us|them to (?:me|us)|it to (?:me|us))"
    r"|to me|(?:so (?:that )?|where )i can|for me to"
    r"|my (?:own )?(?:google )?(?:server|mail|inbox|account|phone|drive|laptop|machine|box))"
)
_GATHERED: Final = prefiltered(
    rf"\b{_CARRIES}\b.{{0,30}}\b{_ALL}\b.{{0,40}}(?:\b|[~/.]){_SECRETS}\b.{{0,120}}?{_TO_SOMEBODY}"
    rf"|\b{_CARRIES}\b.{{0,20}}[~/.](?:\w+/)?\.?(?:ssh|aws|env|netrc|kube|gnupg)\b.{{0,120}}?{_TO_SOMEBODY}"
    rf"|\b{_CARRIES}\b.{{0,20}}\s/(?:etc|root|home|var/lib)\b.{{0,120}}?{_TO_SOMEBODY}"
    rf"|\b{_CARRIES}\b.{{0,60}}\b{_PERSONAL}\b.{{0,120}}?{_TO_SOMEBODY}"
    rf"|\b{_PERSONAL}\b.{{0,80}}\b{_CARRIES} (?:it|them|that)\b.{{0,60}}?{_TO_SOMEBODY}"
    rf"|\b{_SECRETS}\b.{{0,80}}\b(?:and|then) {_CARRIES} (?:it|them|that)\b.{{0,60}}?{_TO_SOMEBODY}"
)
"""Many are taken, and go to somebody."""
_ALSO: Final = prefiltered(
    rf"\b(?:also|additionally|in addition|as well|a copy)\b.{{0,40}}\b{_SECRETS}\b.{{0,40}}\bto\s+"
    r"(?:https?://\S+|[\w-]+(?:\.[\w-]+)+)"
)
"""What is typed goes to somebody else besides."""
_SHOWN: Final = prefiltered(
    r"\b(?:print|echo|dump|log|show|output|post|publish|put|push|commit|expose|paste)(?:s|es)?\b(?: \w+){0,2}? "
    r"(?:all|every|each|the (?:real|production|live))\b(?: \w+){0,2}? (?:secrets?|passwords?|credentials|tokens"
    r"|api keys"
    r"|private keys?)\b"
    r"|\b(?:store|save|keep|log|write|record)\b.{0,40}\b(?:cvc|cvv|security codes?)\b"
    r"|\b(?:publish|post|upload|put|share|leak|show|release)\b.{0,40}\b(?:with the )?(?:internal|real|live"
    r"|production) "
    r"(?:credentials|passwords?|secrets|keys)\b"
    rf"|\b(?:publish|post|upload|put|leak|release)\b.{{0,20}}\b{_PERSONAL}\b.{{0,40}}\b(?:public\w*|online|web ?site"
    r"|gist|internet|forum|github)\b"
)
"""They are shown where others see them."""
_BREAKS: Final = whole_words(
    r"""
    crack\w*\b.{0,40}\b(?:hash(?:es)?|passwords?|pins?)|hash(?:es)?\b.{0,80}\bcrack (?:them|these|those|it)
    |exploit\w*\b.{0,60}\b(?:use|run|try|launch|fire|throw) (?:it|them|one) (?:against|on|at)|(?:scrap|collect
    |harvest|cop[yi]|export|gather)\w*\b.{0,100}\b(?:sell|resell|trade) (?:them|it|these|those|the data)
    """
)
"""They are broken, used or sold."""
_HAVE: Final = re.compile(r"\W*(?:please )?(?:have|get|let) ", re.IGNORECASE)
_KEPT_SAFE: Final = whole_words(
    r"""
    mask\w*|redact\w*|hash(?:ed|ing)?|encrypt\w*|never|not|without|no longer|instead of|fake|dummy|placeholder\w*
    |tests?|test \w+|fixtures?|staging|sandbox|mock\w*|stub\w*|detect\w*|prevent\w*|scanner|refus\w+
    """
)


def disclosed(sentence: str) -> Iterator[re.Match[str]]:
    """What it takes out, breaks or shows of secrets and people's data."""
    if _KEPT_SAFE.search(sentence):
        return
    for pattern in (_GATHERED, _ALSO, _SHOWN, _BREAKS):
        if (match := pattern.search(sentence)) and (pattern is not _GATHERED or _orders(sentence)):
            yield match


def _orders(sentence: str) -> bool:
    """Whether it wants something done."""
    wants = any(one.wants is not Wants.NOTHING for one in clauses(sentence))
    return wants or _HAVE.match(sentence) is not None
