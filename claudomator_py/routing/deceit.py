"""What of an order is to deceive somebody: to forge, to mislead, to hide from whoever has a right to know."""

import re
from collections.abc import Iterator
from typing import Final

from claudomator_py.routing.orders import MAKES, whole_words

_FALSIFIES: Final = whole_words(
    r"""
    forg(?:e|es|ing|ery)|falsif\w+|fabricat(?:e|es|ing)|counterfeit\w*|impersonat\w*|pos(?:e|es|ing) as
    |pretend\w* (?:to be|that|the|it|they)|backdat\w+|spoof(?:s|ing)?|tamper\w* with
    """
)
_FALSE: Final = whole_words(
    r"""
    fake[sd]?|forged|bogus|counterfeit|invented|made[- ]up|phony|sham|false|deep-?fakes?|spoofed|fabricated
    """
)
_PRODUCES: Final = whole_words(
    rf"""
    {MAKES}|posts?|publish\w*|submit\w*|produc\w*|sends?|register\w*|open\w*|print\w*|fak(?:e|es|ing)|invent\w*
    |issue\w*|giv(?:e|es|ing)|add\w*|leave\w*|buy\w*|sign\w* up
    """
)
_TRUSTED: Final = whole_words(
    r"""
    reviews?|ratings?|accounts?|votes?|testimonials?|followers|likes|invoices?|receipts?|identit(?:y|ies)|diplomas?
    |passports?|certificates?|signatures?|log-?in pages?|web ?sites?|parcels?|deliver(?:y|ies)|customs|refunds?
    |documents?|evidence|results|measurements?|readings|meters?|odometers?|logs|records|statements|reports|names
    |news|articles|profiles?|orders|clicks|traffic|references|degrees|licen[cs]es|audio|voice|video|caller|sender
    |tickets|badges?|offers?|buyers?|customers?|persons?|people|companies|to be (?:a|the|from|our)|minutes
    |balance sheets?|figures|timestamps?|customers|comments
    """
)
_MADE_FOR_TESTS: Final = whole_words(
    r"""
    fixtures?|tests?|testing|mocks?|seed(?:s|ed|ing)?|staging|demo|dev|development|sandbox|load[- ]test\w*
    |placeholder|stub\w*|sample data|faker|fake (?:clock|server|client|timer\w*|date|api|module|object|repository
    |backend|service)|training (?:data|set|course|material)
    """
)
_IN_BULK: Final = whole_words(
    rf"""
    {MAKES}\b.{{0,20}}\b(?:\d[\d.,]*|hundreds of|thousands of|many|lots of) (?:\w+[- ]){{0,3}}?(?:reviews|ratings
    |comments|followers|likes|votes|upvotes|testimonials|accounts|posts)\b.{{0,80}}\b(?:different|various|separate
    |several|under|invented|ips|competitor\w*|restaurant|names|hotel|shop|app|across|get around)
    """
)
_EVADES: Final = whole_words(
    r"""
    (?:hid(?:e|es|ing)|conceal\w*|cover\w* up)\b.{0,40}\b(?:breach|leak|incident|defect|fraud|outage|loss(?:es)?
    |recall)|(?:manipulat|massag|fudg|doctor)\w* (?:the |our |my )?(?:\w+[ /]){0,3}(?:numbers|figures|results|books
    |metrics|statistics)|(?:hid(?:e|es|ing)|delete|remove|change|alter|edit|rewrite|destroy|shred|wipe|cover
    |manipulat\w+|falsif\w+|adjust|backdate|clean)\b.{0,60}\b(?:from|before|so that|so|to mislead
    |ahead of)\b.{0,30}\b(?:auditors?|audit|regulators?|police|court|tax (?:office|authorit\w+)|authorit(?:y|ies)
    |inspect\w+|investigat\w+|prosecutor\w*|watchdog|lawyers?)|cover(?:ing)? (?:it|this|that|up)\b.{0,40}\b(?:breach
    |leak|incident|fraud|traces?|tracks)|(?:emissions?|safety|quality) (?:test|check
    |measurement)\w*\b.{0,60}\b(?:passes|pass)\b|(?:evade|dodge|avoid) (?:\w+ )?(?:taxes|tax|sanctions|customs)
    |(?:tax evasion|insider trading|price[- ]fixing)|(?:get|work) around\b.{0,30}\b(?:limit|ban|captcha|detection
    |block|sanctions|age check)\w*|(?:solve|bypass|defeat|break) (?:\w+ )?captchas?|bribe\w*|kickbacks?|launder\w*
    |blackmail\w*|extort\w*|dox+\w*|stalk(?:s|ing|ers?|erware)?|counterfeit\w*|embezzl\w*|scam(?:s|mers?|ming)?
    |con (?:old|elderly)|ponzi|pyramid scheme
    """
)
_MISLEADS: Final = whole_words(
    r"""
    so (?:that )?(?:nobody|no ?one) (?:\w+ )?(?:sees?|notices?|knows?|finds? out|can (?:see|tell
    |prove)) (?:that )?(?:i|we|it was)|(?:mislead|deceive|trick|defraud|dupe|fool|swindle|manipulat\w+|scare
    |pressure)\w* (?:our |the |old |elderly |some |their )?(?:customers?|users?|people|pensioners|investors|buyers
    |regulators?|auditors?|voters?|visitors?|children|seniors|shareholders|employees|players)|(?:looks?|looking|read
    |sounds?) (?:exactly |just |as if |like )+(?:(?:it|they)(?:['\u2019](?:s|re)| is| comes?| were| came
    | are) )?(?:from )?(?:the |our |a |their |your )?(?:bank|post office|parcel service|police|paypal|tax office
    |microsoft|insurance|it (?:department|support|desk|team)|help ?desk|hr|human resources|ceo|government)\w*
    |(?:reviews?|ratings?|comments?|testimonials?|letters?) (?:\w+ )?(?:as|in the name of) (?:\w+ )?(?:patients?
    |customers?|guests?|users?|buyers?|clients?|readers?)|(?:sav(?:e|es|ing)|keep(?:s|ing)?|stor(?:e|es|ing)
    |record(?:s|ing)?|collect(?:s|ing)?) what (?:(?:people|they|users|visitors|customers) (?:type|enter)|(?:is|gets
    |was) (?:typed|entered))|in the name of (?:the |our |my |a )?(?:c[efot]o|boss|head\w*|teacher|director|manager
    |bank|police|tax office|authorit\w+)|so (?:that )?(?:investors|customers|auditors|buyers|regulators|voters|users
    |people) (?:believe|think)|looks? (?:less used|healthier|younger|safer)|(?:change|alter|adjust|tweak
    |edit)\b.{0,20}\b(?:results?|figures|statistics|measurements|findings)\b.{0,60}\bso (?:that )?(?:it|they
    |we) looks? |under (?:different|false|various|other|invented) names|(?:impossible
    |too hard) (?:\w+ ){0,3}?to (?:find (?:how|where|out how) to )?(?:cancel|unsubscribe|opt out|leave)
    |reviewers? (?:do(?:es)?n.t|do not|never|won.t) (?:spot|notice|find)|(?:bots?|scripts?)\b.{0,40}\b(?:votes?
    |likes?|follows?|clicks?|upvotes?)\b.{0,60}\b(?:times|prox(?:y|ies)|accounts|ips)|as if (?:it|they) (?:comes?
    |came|were|is|are)(?: sent)? (?:from|by)|(?:cancel|unsubscribe|opt-?out|delete account)\b.{0,40}\b(?:not work
    |do(?:es)? nothing|impossible|fail|hard to find|useless|never works)|so (?:that )?(?:it|they|he
    |she) looks? (?:signed|real|genuine|official|legit\w*|older|newer|earlier|authentic|as if|paid|valid)
    |asks? (?:people|them|users|customers|recipients|you) for (?:their|your) (?:account|card|password|pin|bank|tan
    |social)\w*|your parcel could not|(?:slow|break|degrad|worse|fail|crash)\w*\b.{0,80}\bso (?:that )?(?:people
    |customers|users|they) (?:buy|pay|upgrade|stay|renew|have to)|(?:with|in|of|imitat\w+
    |clon\w+) (?:the |his |her |my )?(?:\w+ )?voice of|from (?:hundreds|thousands|dozens|many|different
    |several) (?:of )?(?:\w+ )?accounts|(?:dark patterns?|bait and switch)|(?:fail|break|slow|wear out
    |die)\w*\b.{0,40}\b(?:after|when) (?:the )?warranty
    """
)
_NEAR: Final = 30
"""Characters after something false in which it is said what is."""


def deceives(sentence: str) -> Iterator[re.Match[str]]:
    """What it says that is to deceive."""
    for pattern in (_EVADES, _MISLEADS, _IN_BULK):
        yield from pattern.finditer(sentence)
    false = _FALSIFIES.search(sentence) or _FALSE.search(sentence)
    if false and not _MADE_FOR_TESTS.search(sentence):
        yield from _falsified(sentence)


def _falsified(part: str) -> Iterator[re.Match[str]]:
    if (match := _FALSIFIES.search(part)) and _TRUSTED.search(part):
        yield match
    for match in _FALSE.finditer(part):
        near = part[match.end() : match.end() + _NEAR]
        if _TRUSTED.search(near) and _PRODUCES.search(part[: match.start()]):
            yield match
