"""What a task's text says of the harm that it could do, and whether it says enough for anybody to do it.

By rules, without a model.

A text is judged sentence by sentence, by what it wants done and to what. Who only reads, describes, plans or reviews
changes nothing, whatever it is about. Nothing in a text makes it less risky: that it claims to be harmless, approved or
urgent, or tells who is to judge it, is content like the rest. The rules err on the side of asking: they look at words,
and know neither irony nor context.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from claudomator_py.domain.routing import Risk


class Sign(StrEnum):
    """What was seen in a text."""

    LIVE = "live"
    """It acts on a system that people use."""
    PUBLISHED = "published"
    """It publishes something, or rewrites what is published."""
    MONEY = "money"
    """It moves money."""
    CREDENTIALS = "credentials"
    """It changes credentials in use."""
    IRREVERSIBLE = "irreversible"
    """It deletes what nobody can bring back."""
    MASS_MAIL = "mass_mail"
    """It writes to many people."""
    HARMFUL = "harmful"
    """It is meant to harm or deceive somebody."""
    VAGUE = "vague"
    """It does not say what is wanted of what."""


@dataclass(frozen=True, slots=True)
class Assessment:
    """What a text says."""

    risk: Risk
    signs: tuple[tuple[Sign, str], ...] = ()
    """What was seen, with the words in which it was."""

    @property
    def harmful(self) -> bool:
        """Whether it asks for harm."""
        return any(sign is Sign.HARMFUL for sign, _ in self.signs)

    @property
    def words(self) -> str:
        """What was seen of harm, in the words of the text; empty: nothing."""
        return "; ".join(words for sign, words in self.signs if sign is not Sign.VAGUE)

    def seen(self, sign: Sign) -> str | None:
        """The words in which that was seen; None: it was not."""
        return next((words for one, words in self.signs if one is sign), None)

    @property
    def vague(self) -> bool:
        """Whether it says too little for anybody."""
        return any(sign is Sign.VAGUE for sign, _ in self.signs)


def _words(patterns: str) -> re.Pattern[str]:
    """One of these, as whole words in any case. A line that ends within a pattern goes on in the next one."""
    joined = "".join(line.strip("\n")[4:] for line in patterns.splitlines())
    return re.compile(rf"\b(?:{joined})\b", re.IGNORECASE)


def _set(words: str) -> frozenset[str]:
    """The words in the text."""
    return frozenset(words.split())


_SENTENCE: Final = re.compile(r"(?<=[.!?;])\s+|\n+")
_LIVE: Final = _words(
    r"""
    prod(?:uction)?|(?<!to )(?<!to-)live (?!stream|view|preview|data in|search|reload|coding|region|chat|of)\w+|
    on live|in live
    """
)
_NOT_LIVE: Final = _words(
    r"""
    (?:copy|dump|clone|snapshot|backup|export|data|rows|logs?|metrics|image tag) (?:of|from|as)
     (?:the |our )?prod\w*|
    production[- ](?:ready|like|grade|quality|code|build|bundle|mode|traffic|data|dump|logs?|copy)|
    (?:like|as|than|from|before|until|outside) (?:in |on |it reaches )?(?:the |our )?prod\w*|for production use|
    (?:not|never|nothing) (?:\w+ )?(?:in|on|to|touch\w*) prod\w*|non-production|pre-?prod\w*
    """
)
_HARMLESS_RUN: Final = _words(
    r"""
    dry[- ]run|read[- ]only|(?:only )?on (?:a )?(?:local|scratch) \w+
    """
)
_ACTS: Final = _words(
    r"""
    drop|delete|remove|purge|truncate|wipe|erase|fail\b.{0,40}\bover|failover|deploy|
    roll (?:it|them|this|out|back|the)|rollout|rollback|apply|run|execute|retry|rotate|exchange|replace|swap|restart|
    reboot|push|release|resend|re-?send|scan|load[- ]test\w*|migrate|switch\b.{0,30}\b(?:off|on|over)|
    turn (?:off|on)|disable|enable|shut|stop|kill|restore|revoke|reset|scale|resize|upgrade|promote|cut over|flush|
    update|set|change|move|attack|exploit|reboot|patch|install|merge|backfill|import|load
    """
)
_ONLY_WORDS: Final = re.compile(
    r"^\W*(?:(?:please|can you|could you|kindly|i(?:'d| would) like (?:you )?to|let's|first,?|then,?|and)\s+)*"
    r"(?:write|draft|plan|describe|document|review|explain|compare|list|propose|summari[sz]e|analy[sz]e|check|read|"
    r"find out|investigate|estimate|design|outline|sketch|assess|audit|evaluate|research|collect|tell|show|look|why|"
    r"how|what|which|who|when|where|is|are|does|do you|should|would|translate|proofread|"
    r"prepare (?:a|the) (?:plan|runbook|checklist|text|draft|report)|"
    r"make (?:a|the) (?:plan|list|table|overview|checklist|runbook|diagram)|trace|measure|count|note|name"
    r"|suggest|recommend|reproduce)\b",
    re.IGNORECASE,
)
_WRITTEN: Final = _words(
    r"""
    runbook|checklist|playbook|postmortem|post-mortem|proposal|documentation|docs?|readme|guide|tutorial|changelog|
    release notes|slides|(?<!and )report|summary|overview|comparison|diagram|glossary|faq|essay|article|adr
    """
)
_THEN_DO: Final = _words(
    r"""
    (?:and|then|and then)\s+(?:then\s+)?(?:run|execute|apply|deploy|publish|delete|drop|push|send|roll|do) (?:it
    |them|that|this|the|all)
    """
)
_PUBLISHED: Final = _words(
    r"""
    publish\w*\b.*\b(?:pypi|npm|docker ?hub|maven|crates(?:\.io)?|rubygems|nuget|registr(?:y|ies)|app ?store
    |play ?store|marketplace)|(?:push|pushed) (?:it )?(?:with force|--force|-f)|force[- ]push\w*|push --force\S*|
    rewrit\w+ (?:the )?(?:git )?history|filter-(?:repo|branch)|
    delete the (?:tag|branch|release).*\b(?:origin|remote|mirrors?)|branch protection|
    (?:unpublish|yank)\b.*\b(?:version|release|package)
    """
)
_MONEY: Final = _words(
    r"""
    refund (?:all|the|every|them|these|\d+)\w*|run the (?:refund|payout|billing|invoic\w+|charge|payroll)\w*|
    (?:retry|repeat|release|execute|trigger|send) (?:the )?(?:\w+ ){0,3}(?:payouts?|payments?|refunds?|transfers?
    |charges?|payroll)|charge (?:all|the|every|each|\d+) (?:\w+ )?(?:customers?|cards?|accounts?|users?)|
    (?:wire|transfer) (?:the )?(?:money|funds|\d)|pay (?:out|the invoices?)
    """
)
_CREDENTIALS: Final = _words(
    r"""
    (?:rotate|exchange|revoke|reissue|invalidate|replace)\b.{0,60}\b(?:credentials?|secrets?|private keys?
    |signing keys?|api keys?|passwords?|certificates?|tokens)|
    (?:private key|certificate|credentials?|api keys?)\b.{0,40}\b(?:be )?(?:rotated|exchanged|revoked|replaced)
    """
)
_IRREVERSIBLE: Final = _words(
    r"""
    rm -rf? (?:--no-preserve-root )?[/~]\S*|drop (?:the )?(?:database|schema|production)|wipe (?:the|all|every)\b|
    (?:delete|erase|purge) (?:all|every|the) (?:\w+ )?(?:backups?|customers?|accounts|user data|customer data
    |volumes?|buckets?)|can(?:not|'t|no longer) be (?:undone|taken back|restored|recovered)|irrevocabl[ey]|
    irreversibl[ey]
    """
)
_EVERYBODY: Final = re.compile(
    r"^\W*(?:(?:please|now|then)\s+)*(?:"
    r"(?:refund|charge|reimburse|revoke|invalidate|reset|rotate|suspend|cancel|lock)\b.{0,40}\b(?:all|every|each)\b"
    r".{0,30}\b(?:customers?|users?|orders?|accounts?|subscriptions?|tenants?|members|payments?)|"
    r"(?:wire|transfer) (?:the |all )?(?:money|funds|\d)|"
    r"fail\b.{0,30}\b(?:primary|database|region|cluster)\b.{0,30}\bover)\b",
    re.IGNORECASE,
)
"""It is done at once, to what is in use, whether or not the text says where."""
_NOBODYS: Final = _words(
    r"""
    staging|sandbox\w*|demo|fixtures?|mock\w*|fake|local\w*|tests?|test \w+|dev|development|scratch|seed(?:ed)?
    """
)
_MASS_MAIL: Final = _words(
    r"""
    (?:send|mail|email|e-mail|text|sms|notify)\b.{0,60}\b(?:to )?(?:all|every|each|\d[\d.,]{2,}) (?:of )?(?:our\s
    |the )?(?:\w+ )?(?:customers?|users?|subscribers?|members|recipients|clients)
    """
)
_HARMFUL: Final = _words(
    r"""
    (?:copy|copies|steal\w*|collect\w*|harvest\w*|grab\w*|exfiltrat\w*|upload\w*|send\w*)\b.{0,40}\b(?:saved
    |visitors?'?s?|users?'?|victims?'?|their|people's|browser|others?'?|customers?'?) ?(?:saved |browser\s
    |private )?(?:passwords?|cookies|keystrokes|credentials|card (?:data|numbers)|wallets?)\b.{0,80}\b(?:to us
    |to me|our server|secret\w*|hidden|without|quietly|silently)|
    (?:copies|steals|harvests|grabs|exfiltrates) (?:\w+ ){0,3}(?:passwords|cookies|keystrokes|credentials
    |card numbers)|
    (?:record|monitor|watch|track|read|listen|log)\w*\b.{0,40}\b(?:in secret|secretly|covertly|without (?:them
    |their|his|her|anybody|anyone|telling|knowing|consent|the user))|
    (?:in secret|secretly|covertly|without (?:their|his|her) (?:knowledge|consent|knowing))\b.{0,60}\b(?:record
    |monitor|watch|track|read|listen|log|camera|microphone|chats?|location)\w*|
    (?:post|posts|write|writes|generate\w*|creat\w*|publish\w*)\b.{0,40}\bfake\b.{0,30}\b(?:reviews?|ratings?
    |accounts?|votes?|testimonials?|followers|invoices?|identit\w+|diplomas?|passports?)|
    (?:flood|floods|flooding|ddos|dos|take down|takes down|bring down|knock\w*|overload)\b.{0,60}\b(?:competitor
    |rival|their|his|her|opponent|enemy|ex-?\w+)\w*|
    (?:competitor|rival)\w*\b.{0,80}\b(?:flood\w*|goes? down|offline|ddos|unreachable|crash\w*)|
    (?:build|write|make|create|need|want|develop|deploy|send)\b.{0,40}\b(?:ransomware|key ?logger|malware|spyware
    |rootkit|botnet|phishing (?:mails?|page|site|kit)|computer virus|trojan)|
    (?:hide|plant|add|leave|build in|put)\b.{0,30}\bback ?door|(?:break|hack) into\b|
    (?:get|log) into (?:his|her|their|(?:some|any)(?:body|one)'s|another \w+|(?:my|a|the) (?:ex\S*|colleague\S*
    |competitor\S*|boss\S*|neighbou?r\S*)) ?(?:\w+ ){0,2}(?:account|mailbox|phone|server|e-?mail|computer|system
    |messages)\w*|
    (?:crack|bypass|circumvent|remove|strip)\b.{0,30}\b(?:licen[cs]e (?:check|key|protection)|copy protection|drm
    |paywall)|
    stolen (?:credit )?(?:cards?|credentials|accounts|identit\w+|passwords?)\b.{0,40}\b(?:use|try|test|check|buy
    |sell|log)|
    (?:buy|use|try|test|sell)\w*\b.{0,40}\bstolen (?:credit )?(?:cards?|credentials|accounts|identit\w+|passwords?)|
    so (?:that )?(?:nobody|no ?one) (?:\w+ )?(?:sees?|notices?|knows?|finds? out|can (?:see|tell|prove)) (?:that )?(?:i
    |we|it was)|
    (?:launder|counterfeit|blackmail|extort|dox+|stalk)\w*|
    (?:mislead|deceive|trick|defraud|scam)\w* (?:our |the |old |elderly )?(?:customers?|users?|people|pensioners
    |investors|buyers|regulators?|auditors?|the auditor)
    """
)
_DEFENCE: Final = _words(
    r"""
    detect\w*|protect\w*|prevent\w*|defen[cs]e|defend\w*|block\w*|filter\w*|mitigat\w*|report|awareness|
    against (?!(?:our|the|this|that|their|my|a) (?:\w+ )?(?:checkout|shop|login|site|page|api|bank|form|gateway)s?)|
    training|authori[sz]ed|unit tests?|fixture|rate[- ]limit\w*|explain|how (?:does|do|did)|spot|recogni[sz]e|
    remov\w+ malware
    """
)
_CONCRETE: Final = re.compile(
    r"[`\"\u201c\u201d/\\_#@=<>{}\[\]]|\d|\b[a-z]+[A-Z]\w*|\b[A-Z]{2,}\b|\w\.\w|(?<=[a-z,] )[A-Z][a-z]+"
)
_WORD: Final = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")
_SAYS_NOTHING: Final = _set(
    """
    a an the this that these those it its itself he she they them him her his their we us our you your i me my and
    or but if then than so as at by for from in into of on onto off to up down out over with without about again
    also just only very too not no yes ok okay hi hello hola hey dear please pls plz thanks thank thx is are was
    were be been being am do does did done doing has have had having can could will would shall should may might
    must let lets when where what which who whom whose why how there here all any some each every both either one
    ones other others another such same like more most less least much many few bit little lot kind sort way ways
    thing things something anything nothing everything someone somebody stuff part parts whole rest point now soon
    later today tomorrow yesterday last next time times before after while still already asap urgent urgently quick
    quickly fast fix fixes fixed repair mend update updates upgrade change changes improve improvement improvements
    better best good nice nicer great new old modern bad worse strange weird odd wrong broken correct right work
    works working make makes made get gets got give go goes going come put take see look looks want wants wanted
    need needs needed wish wishes would try help handle deal solve optimise optimize optimised polish clean cleanup
    tidy finish complete continue redo undo revert rework adjust adapt tweak ready demo content client clients
    customer customers user users people guy boss team everyone system systems program programs programme app apps
    application applications software softwares tool tools code project projects site page pages screen file files
    version versions feature features option options setting settings screenshot screenshots attached attachment
    attachments picture image error errors bug bugs problem problems issue issues flexible easy easier simple
    simpler click clicks clicked png jpg thread mail ticket above below mentioned discussed said told talked agreed
    usual usually normal normally properly well keep keeps leave bring use uses used
    """
)
_MOST_WORDS: Final = 30


def assess(instructions: str) -> Assessment:
    """Judge a task by its text. The same text is always judged the same.

    The risk is low or high: whether what is changed is the product or a text about it, words alone do not tell well
    enough; a rule of the policy can.
    """
    sentences = [part for part in _SENTENCE.split(instructions) if part.strip()]
    signs = [*_high(sentences), *_harm(instructions)]
    if signs:
        return Assessment(Risk.HIGH, tuple(signs))
    words = _vague(instructions)
    return Assessment(Risk.LOW, () if words is None else ((Sign.VAGUE, words),))


def _high(sentences: Sequence[str]) -> list[tuple[Sign, str]]:
    """What of it touches what is in use, cannot be undone, or is public."""
    found: list[tuple[Sign, str]] = []
    live = next((match.group() for part in sentences if (match := _LIVE.search(_NOT_LIVE.sub(" ", part)))), None)
    for part in sentences:
        only_words = _only_words(part)
        if only_words or (_WRITTEN.search(part) and not _THEN_DO.search(part)):
            continue
        for sign, pattern in (
            (Sign.PUBLISHED, _PUBLISHED),
            (Sign.MASS_MAIL, _MASS_MAIL),
            (Sign.IRREVERSIBLE, _IRREVERSIBLE),
        ):
            if (match := pattern.search(part)) and not _HARMLESS_RUN.search(part):
                found.append((sign, match.group()))
        if (match := _EVERYBODY.search(part)) and not (_NOBODYS.search(part) or _HARMLESS_RUN.search(part)):
            found.append((Sign.LIVE, match.group().strip()))
        if live is None or _HARMLESS_RUN.search(part):
            continue
        for sign, pattern in ((Sign.MONEY, _MONEY), (Sign.CREDENTIALS, _CREDENTIALS)):
            if match := pattern.search(part):
                found.append((sign, match.group()))
        if _LIVE.search(_NOT_LIVE.sub(" ", part)) and (match := _ACTS.search(part)):
            found.append((Sign.LIVE, f"{match.group()} ... {live}"))
    return found


def _only_words(sentence: str) -> bool:
    """Whether it asks for words about something, and not for the thing itself."""
    return _ONLY_WORDS.search(sentence) is not None and _THEN_DO.search(sentence) is None


def _harm(text: str) -> list[tuple[Sign, str]]:
    flat = " ".join(text.split())
    return [
        (Sign.HARMFUL, match.group())
        for part in re.split(r"(?<=[.!?;])\s+", flat)
        if (match := _HARMFUL.search(part)) and not _DEFENCE.search(part)
    ]


def _vague(instructions: str) -> str | None:
    """The text, if every word of it could be about anything; None: it says something."""
    words = _WORD.findall(instructions)
    if len(words) > _MOST_WORDS or _CONCRETE.search(instructions.strip().removesuffix(".")):
        return None
    says = [word for word in words if re.sub(r"['\u2019]s?$|['\u2019]\w+$", "", word.lower()) not in _SAYS_NOTHING]
    return None if says else " ".join(words)[:200]
