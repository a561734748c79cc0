"""Whom an order reaches: only whoever gives it, or others too.

To cancel one's own reservation, pay one's own bill or lock one's own card harms nobody else, and who asks for it has
decided it. A system is nobody's own, whoever calls it "my server", and neither are other people or their data.
"""

import re
from typing import Final

from claudomator_py.routing.orders import Clause, whole_words

_SHARED: Final = (
    r"(?:\w+ ){0,3}?(?:data|databases?|db|tables?|servers?|clusters?|hosts?|machines?|nodes?|fleet|networks?|firewall"
    r"|sites?|website|shop|store|apps?|services?|systems?|api|repo\w*|branch(?:es)?|domains?|dns|buckets?|backups?"
    r"|snapshots?|disks?|drives?|volumes?|namespaces?|tenants?|prod\w*|cloud|aws|gcp|azure|github|kubernetes|root"
    r"|admin\w*|keys?|tokens?|secrets?|certificates?|credentials|passwords?|company\w*|team\w*|department"
    r"|employ\w+|staff|customers?|users?|clients?|members?|subscribers?|followers|contacts|list|colleagues?"
    r"|neighbou?rs?|tenant\w*|wife|husband|ex|ex-\w+|child\w*|kids?)"
)
_OWN: Final = re.compile(
    r"\W*[A-Za-z-]+(?: (?:off|out|down|up|back|for|to|on|in|at))? my (?!" + _SHARED + r"\b)", re.IGNORECASE
)
"""What is done is done to something of one's own."""
_ABOUT_OWN: Final = re.compile(
    r"\W*(?:(?:pay|put|increase|raise|lower|freeze|unfreeze|block|unblock|lock|unlock|stop|hold|cancel|restart|renew"
    r"|delete|erase|clear)\b(?!.*\b(?:our|his|her|their|all (?:the )?\w*(?:users|customers|orders|payments))\b)"
    r".{0,60}\b(?:to|towards?|on|for|of|in|from) my (?:[\w-]+ ){0,3}?"
    r"(?:bills?|rent|loan|fine|card|inbox|calendar|phone|paycheck|reservation|subscription|plan)"
    r"|(?:freeze|block|lock|stop|hold|put an? (?:stop|hold|freeze|block))\b.{0,40}\b(?:to|on|of) my (?:[\w-]+ ){0,2}?"
    r"accounts?)\b",
    re.IGNORECASE,
)
_FROM_OWN: Final = re.compile(
    r"\b(?:use|using|from|with) my (?!" + _SHARED + r"\b)(?:[\w-]+ ){0,3}?(?:account|card)\b.*\bpay\b.{0,40}\bbill\b",
    re.IGNORECASE,
)
"""A bill is paid, and by whoever says so."""
_ONE_PERSON: Final = re.compile(
    r"\W*(?:call|text|inform|notify|remind|e?-?mail|message|tell) (?:(?:him|her|me|us)\b|.*\bfor me\W*$)", re.IGNORECASE
)
_APPOINTMENT: Final = whole_words("(?:a|an|the) (?:\\w+ )?(?:reservation|appointment|meeting)")
_NOW: Final = whole_words("(?:the|this) current \\w+")


def only_own(clause: Clause, sentence: str) -> bool:
    """Whether it reaches only whoever orders it, or the one person whom it tells something.

    sentence: the whole one.
    """
    if clause.at is None:
        return False
    ordered = clause.text[clause.at :]
    if clause.verb == "pay" and _FROM_OWN.search(sentence):
        return True
    return any(one.match(ordered) for one in (_OWN, _ABOUT_OWN, _ONE_PERSON)) or any(
        one.search(ordered) for one in (_APPOINTMENT, _NOW)
    )
