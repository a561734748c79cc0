"""What of an order is meant to harm or deceive somebody, or may be.

Few words are harmful by themselves; most harm is something ordinary (to copy, to log, to write reviews) that is done to
somebody who is not to know, in a name that is not one's own, or to somebody else's system. So a sentence is looked at
for such pairs. What only detects, prevents, explains or tests is none of it.
"""

import re
from collections.abc import Iterator
from typing import Final

from claudomator_py.routing.deceit import deceives
from claudomator_py.routing.disclosure import disclosed
from claudomator_py.routing.orders import MAKES, PEOPLE, Found, Sign, Wants, clauses, sentences, whole_words

_OTHERS: Final = (
    r"(?:competitor\w*|competition|rival\w*|opponent\w*|enem(?:y|ies)|victim\w*|ex|ex-\w+|neighbou?r\w*|hospital"
    rf"|politicians?|of (?:the |this |that |my |our )?{PEOPLE}|{PEOPLE}(?:['\u2019]s|s['\u2019])|somebody else"
    rf"|someone else"
    r"|other (?:people|users|companies|shops)|another (?:company|user|person|shop|firm)\w*|(?:his|her) (?:site"
    r"|server|account|phone|mail\w*|network|api|shop|system|computer|laptop|router|wi-?fi|backup)"
    r"|their (?:booking \w+|servers?|accounts? at|phones|network|checkout|shop|wi-?fi))"
)
_PRIVATE: Final = (
    r"(?:passwords?|passphrases?|pins?|cookies|keystrokes?|credentials|card (?:data|numbers?|details)|wallets?"
    r"|seed phrases?|brows\w+ history|contacts|patient (?:records|data|files)|medical records|bank details"
    r"|home address(?:es)?|where \w+ lives?|microphone|camera|whereabouts|location|every key|clipboard|(?:private"
    r"|personal|intimate|his|her|their|people's|somebody's|someone's|(?:users?|customers?|employees?|visitors?"
    r"|members?|colleagues?|wife|husband|boss|children)['\u2019]s?|of (?:the |our |my )?(?:users|customers"
    r"|employees|visitors|members|colleagues|wom[ae]n|children)) (?:\w+ ){0,2}?(?:chats?|messages|mails?"
    r"|e-?mails?|calls|photos|data|profiles?|screens?|conversations?|files|phones?))"
)
_COVERT: Final = whole_words(
    r"""
    secretly|in secret|covert\w*|surreptitious\w*|clandestine\w*|stealth\w*|undetect\w+|unnoticed|untraceabl\w+
    |behind \w+ backs?|without (?:\w+(?:['\u2019]\w*)? ){0,4}?(?:knowing|noticing|knowledge|consent|permission|realis\w+
    |realiz\w+|being (?:told|asked|noticed|seen|caught)|telling|asking|awareness|suspecting)|so (?:that )?(?:nobody
    |no ?one|(?:they|he|she|the \w+|users?|customers?|people) (?:\w+ )?(?:never|not|cannot|(?:do|does|can
    |wo)n['\u2019]t)) (?:\w+ ){0,2}?(?:notices?|knows?|sees?|finds? out|suspects?|can (?:see|tell|prove|trace))
    |(?:he|she|they|nobody|no ?one|users?|customers?|employees|auditors?|\w+ policy|privacy \w+|visitors?) (?:shall
    |must|should|may|can|do|does|will|is to|are to|need) ?(?:not|never|n['\u2019]?t)? ?(?:to )?(?:know|notice|learn
    |see|find out|be told|suspect|mention|hear|realise|realize)|(?:don['\u2019]?t|do not|never|must not
    |not to) (?:tell|inform|mention|warn|let|document) (?:\w+ )?(?:it|them|him|her|users?|customers?|anyone|anybody
    |know|about)|(?:make sure|ensure|see to it) (?:that )?(?:nobody|no ?one) (?:sees|notices|knows|finds)
    |although (?:they|users|he|she|visitors) (?:\w+ )?(?:refus|declin|opt|object|said)\w*|(?:even (?:if|when|though)
    |despite|regardless of) (?:\w+ ){0,3}(?:refus|declin|opt(?:ed|ing)?[- ]?out|objec|consent)\w*|against (?:his|her
    |their) will|under the radar|off the books|on the (?:quiet|sly)|hide (?:it|this|that|them|the fact) from
    |keep (?:it|this|that) (?:hidden|secret|away) from|(?:without|leav(?:e|es|ing) no|no|any) traces?(?! id)
    """
)
_QUIET: Final = whole_words(
    r"""
    quiet(?:ly)?|silent(?:ly)?|hidden|hid(?:e|es|ing)|disguis\w+|secret (?!key|store|manager|name|is|in|to|from
    |value)\w+|conceal\w*|camouflag\w+|in the background|around the clock
    """
)
_TAKES: Final = whole_words(
    r"""
    record\w*|log(?:s|ging)?|read(?:s|ing)?|track\w*|monitor\w*|watch\w*|listen\w*|film\w*|spy\w*|follow\w*
    |access\w*|cop(?:y|ies|ying)|collect\w*|harvest\w*|steal\w*|grab\w*|siphon\w*|exfiltrat\w*|upload\w*|send\w*
    |forward\w*|captur\w+|intercept\w*|scrap\w+|pay\w*|transfer\w*|min(?:e|es|ing|er)|install\w*|sell\w*|share\w*
    |take\w*
    """
)
_PERSONAL: Final = whole_words(
    rf"""
    {_PRIVATE}
    """
)
_AWAY: Final = whole_words(
    r"""
    to (?:us|me|our (?:\w+ )?(?:server|site|host|database|address)|my (?:\w+ )?(?:server|mail|account|phone
    |address))|mails? (?:it|them) to (?:me|us)|into my (?:\w+ )?account
    """
)
_IN_A_TEST: Final = whole_words("fixtures?|mocks?|stub\\w*|test (?:data|set|suite|cases?)")
_ATTACKS: Final = whole_words(
    r"""
    flood\w*|ddos|dos|tak(?:e|es|ing) \w*\s?(?:\w+ ){0,4}?(?:down|offline)|crawl(?:s|ing)?
    |with (?:the |a |his |her |their )?(?:passwords?|log-?in|credentials)|bring(?:s|ing)? \w*\s?(?:\w+ ){0,4}?down
    |knock\w*|overload\w*|crash(?:es)?|hack\w*|break(?:s|ing)? into|guess\w*|brute-?forc\w*|crack\w*|steal\w*
    |exploit\w*|deface\w*|sabotag\w*|infect\w*|hijack\w*|junk traffic|spam\w*|log(?:s|ging)? in(?:to)?|get(?:s
    |ting)? into|enter\w*|smear\w*|harass\w*|threaten\w*|insult\w*|bully\w*|humiliat\w*|try (?:\w+ ){0,4}passwords
    |most common passwords|open(?:s|ing)? the (?:chats|mails)|hear\w*|unlock\w*|gain\w*|offline
    |scrape\w* (?:all )?(?:\w+ )?(?:customers?|prices behind)|read (?:my|his|her|their)|unreachable|goes? (?:down
    |offline)
    """
)
_SOMEBODY_ELSES: Final = whole_words(
    rf"""
    {_OTHERS}
    """
)
_MALWARE: Final = whole_words(
    rf"""
    ddos (?:the|their|his|her|a|this|that|them)|(?:steal|harvest|exfiltrat|siphon|grab)\w*\b.{{0,30}}\b{_PRIVATE}
    |{MAKES}\b.{{0,60}}\b(?:ransomware|key-?\s?loggers?|malware|spyware|stalkerware|rootkits?|botnets?
    |phishing (?:mails?|e-?mails?|pages?|sites?|kits?|campaigns?|sms)|computer virus(?:es)?|a virus|trojans?
    |logic bombs?|time bombs?|worms?|crypto ?jack\w+|info-?stealers?|exploits? (?:for|against)
    |denial[- ]of[- ]service|(?:crypto|coin|bitcoin)[- ]?miners? (?:on|in|into|as))|(?:hide|plant|add|leave|build in
    |put|insert|smuggle|implement|install)\b.{{0,40}}\b(?:back ?doors?|kill ?switch\w*\b.*\b(?:client|customer|renew
    |pay|tell)\w*|secret switch\w*)|(?:hide|plant|leave|keep|smuggle)\b.{{0,40}}\b(?:way|door|path|account|log-?in
    |route|entrance)\b.{{0,30}}\b(?:in|into|for me)\b|(?:log|get|sign) in\b.{{0,40}}\b(?:even )?(?:after|once
    |when) i(?:['\u2019]m| am| have| was|['\u2019]ve)? (?:left|leave|gone|fired)|(?:log|record|captur|sav)(?:e|es|s
    |ing)? (?:every|all|each) (?:key|keystroke)\w*|spread\w* (?:itself|by itself|on its own)|(?:tool|script|program
    |bot)s? (?:to|that|which) (?:\w+ )?(?:takes?|brings?|knocks?) (?:down|offline) (?:an?|any|other
    |some\w*) |so (?:that )?(?:we|i) can (?:always|later|still) (?:get|log) (?:back )?in|spy(?:s
    |ing)? on (?:my |his |her |our |the |a )?{PEOPLE}|self-(?:replicat|spread|propagat)\w+|(?<!it )phon(?:e|es
    |ing) home|into (?:crypto ?)?miners?|(?:earn|mak|generat)\w* (?:\w+ ){{0,2}}?(?:crypto\w*|coins|bitcoins?|monero
    |ethereum)|(?:hammer|pound|flood|bombard)\w* (?:their|his|her)\b.{{0,60}}\buntil|(?:encrypt
    |lock)\w*\b.{{0,60}}\b(?:files|documents|photos|drives?|disks?|shares|servers?|data)\b.{{0,60}}\b(?:ransom
    |where to (?:pay|send)|until (?:they|he|she) pays?|demand\w*|bitcoin)|min(?:e|es
    |ing) (?:some |a few |any |more |us )?(?:monero|bitcoins?|crypto\w*|coins|ethereum)|(?:gives?|gets?
    |gain\w*) (?:us|me) access to (?:\w+ )?{PEOPLE}['\u2019]s|(?:miner|mining)\b.{{0,60}}\b(?:visitors?|users?
    |customers?|employees)\w*\b
    """
)
_WITHOUT_PAYING: Final = whole_words(
    r"""
    (?:crack|bypass|circumvent|remove|strip|break|defeat|disable|patch out|get around)\b.{0,40}\b(?:licen[cs]e
    |licen[cs]ing|copy protection|drm|paywall|activation|trial limit|dongle)\b
    |without (?:a |the |any )?(?:subscription|licen[cs]e fee|paying)|(?:so (?:that )?)?(?:we|i|they|you) (?:do|need
    |does)n['\u2019]t (?:have to |need to )?pay|serial (?:key|number) generator|keygens?|pirat(?:e
    |ed)\b.{0,30}\b(?:cop(?:y|ies)|software|films?|movies|books)|without paying for
    """
)
_VIOLENT: Final = whole_words(
    r"""
    (?:build|make|construct|assemble|synthesi[sz]e|cook|buy|get|print)\b.{0,40}\b(?:bombs?|explosives?|grenades?
    |nerve agents?|poison(?:s|ous gas)?|guns?|firearms?|silencers?|meth|methamphetamine|heroin|fentanyl|bioweapons?
    |napalm)|(?:kill|murder|hurt|poison|kidnap|assassinate) (?:my|his|her|a|the|some|our) (?:\w+ )?(?:wife|husband
    |boss|neighbou?r|person|people|man|woman|child\w*|dog|cat|colleague)|child porn\w*|sexual\w*\b.{0,30}\b(?:minor
    |child)\w*
    """
)
_UNFAIR: Final = whole_words(
    r"""
    (?:reject|sort out|filter out|exclude|turn down|go(?:es)? up|pay more|charge|higher price|more expensive
    |lower score)\w*\b.{0,80}\b(?:women|men over|elderly|pregnan\w+|pensioners|foreign\w*|disabled|religio\w+
    |muslims?|jews|gay|immigrants?|minorit\w+|skin)|(?:gather|collect|harvest|scrap
    |crawl)\w*\b.{0,30}\be-?mail addresses|pregnan\w+\b.{0,80}\b(?:sell|insur|employer)\w*|which (?:employees
    |applicants|customers|members|students|users) (?:are|is) (?:pregnant|ill|sick|gay|muslim|jewish|in a union)
    |(?:vulnerabilit\w+|weak\w*|hole|exploit)\b.{0,60}\b(?:traffic light|power (?:grid|plant)|water supply|hospital
    |airport|election|voting|railway|atm)\w*|count\w*\b.{0,40}\bvotes?\b.{0,60}\b(?:as|for)|(?:reject|sort out
    |filter out|score|rank|exclude|flag|price)\w*\b.{0,60}\b(?:applicants?|candidates?|tenants?|customers|employees
    |borrowers)\b.{0,80}\b(?:foreign\w*|religio\w+|ethnic\w*|race|skin|gender|women|pregnan\w+|older than|union
    |disabled|gay|muslim|jewish|nationality|immigrant\w*)
    """
)
_STOLEN: Final = whole_words(
    r"""
    (?:stolen|leaked|hacked|dumped) (?:credit )?(?:cards?|log-?ins?|credentials|accounts|identit\w+|passwords?
    |combo ?lists?)\b.{0,60}\b(?:use|try|test|check|buy|sell|log|against|work)|(?:buy|use|try|test|sell
    |check)\w*\b.{0,40}\b(?:stolen|leaked|hacked) (?:credit )?(?:cards?|credentials|accounts|identit\w+|passwords?)
    """
)
_WATCHED: Final = whole_words(
    r"""
    inspectors?|inspection|auditors?|(?<!security )audit (?!log|table|trail|entr|event|field|column)\w+|regulators?
    |court|police|investigat(?:ors?|ion)|works council|authorities|tax office|prosecutors?|before the deadline
    """
)
_ALTERS: Final = whole_words(
    r"""
    (?:swap|replace|change|edit|alter|adjust|overwrite|delete|remove|backdate|rewrite|redo|improve|touch up
    |modify)\b.{0,40}\b(?:records?|logs?|measurements?|figures|readings?|results|timestamps?|dates?|minutes
    |contracts?|e-?mails?|messages|evidence|reports?|numbers|files|transactions)
    """
)
_EXPLAINS: Final = re.compile(
    r"^\W*(?:(?:please|can you|could you|kindly|i(?:'d| would) like (?:you )?to|let's|first,?"
    r"|then,?)\s+)*(?:explain|review|compare|investigate|research|summari[sz]e|analy[sz]e|assess|audit|evaluate"
    r"|examine|describe how|discuss|why|how (?:do|does|did|is|are|can|could|would|to (?:detect|prevent|protect"
    r"|defend|stop|spot|avoid))|what|which|document|check|test (?:that|whether)|verify|find out|detect|prevent"
    r"|protect|block|flag|report|defend|add (?:a|an|the)? ?(?:check|filter|rule|test|rate|warning|alert"
    r"|protection)\w*)\b",
    re.IGNORECASE,
)
_DEFENDS: Final = whole_words(
    r"""
    detect\w*|protect\w*|prevent\w*|defen[cs]e|defend\w*|block\w*|filter\w*|mitigat\w*|awareness|training
    |recogni[sz]\w*|spot|resist\w*|harden\w*|withstand\w*|against (?!(?:our|the|this|that|their|my
    |a) (?:\w+ )?(?:checkout|shop|login|site|page|api|bank|form|gateway)s?)|warn\w*|classif\w*|rate[- ]limit\w*
    |moderat\w*|report\w* (?:of|on|about)|unit tests?|fixture|(?:remov|delet|mark|ban|flag|report|find
    |clean)\w* (?:all |the |any )?(?:malware|fake|spam|phishing|stolen|back ?doors?|bots?)|tell the \w+|stop (?:bots
    |spam\w*|scrap\w*)
    """
)
_NOT_DEFENDS: Final = whole_words(
    r"""
    (?:avoid\w*|evad\w*|bypass\w*|circumvent\w*|escap\w*|turn(?:s|ing)? off|disabl\w*|without|defeat\w*|not|no|never
    |nobody|get around|past)\b.{0,30}
    """
)
_BENIGN_QUIET: Final = whole_words(
    r"""
    fails? silently|silently (?:fail\w*|drop\w*|ignor\w*|swallow\w*|skip\w*|truncat\w*|discard\w*|overwrit\w*|los\w+
    |retr\w+|return\w*|continu\w*)|hidden (?:field|input|column|file|folder|state|layer|test|element|button|row
    |class)s?|hid(?:e|es|ing) (?:the |a |an )?(?:\w+ )?(?:button|column|field|row|menu|element|spinner|banner|panel
    |sidebar|header|deleted\b.*|tab|dialog|tooltip|bar|section|widget|labels?|errors?|columns?)|secret (?:scanning
    |rotation|santa)
    """
)


_UNASKED: Final = whole_words(
    r"""
    before (?:\w+ ){0,2}?(?:consents?|agrees?|accepts?)|after work|in (?:his|her|their) free time|off duty
    """
)
_COPIES: Final = whole_words(
    rf"""
    (?:cop(?:y|ies|ying)|collect\w*|harvest\w*|steal\w*|grab\w*|siphon\w*|exfiltrat\w*|scrap\w+|get me|ask(?:s
    |ing)? for)\b.{{0,60}}\b{_PRIVATE}
    """
)
_FINDS_PEOPLE: Final = whole_words(
    r"""
    (?:where|when|with whom) (?:my|his|her|the|this|that) (?:[\w-]+ ){0,2}(?:lives?|sleeps?|walks?|goes to school)
    |(?:track|locate|follow|shadow) (?:my |his |her |the |this |that )?(?:\w+ )?(?:wife|husband|girlfriend|boyfriend
    |ex|ex-\w+|daughter|son|colleague|neighbou?r|journalist)|(?:home )?address\b.{0,60}\b(?:children|kids|school
    |daily|routine|route)|find (?:me )?.{0,40}\b(?:address|phone number|plate|name|identity
    |employer)\b.{0,30}\bof (?:the|this|that|these) (?:wom[ae]n|m[ae]n|person|girl|boy|people|lady|guy|driver)
    |cop(?:y|ies) (?:all|every|any) (?:\w+ )?(?:documents?|files?|data|photos) (?:of|from|off) (?:the|any|every
    |whatever|each) (?:pcs?|computers?|laptops?|phones?|machines?)|(?:find out|figure out|determine|locate|map
    |track down)\b.{0,40}\bwhere (?:she|he|they|these|those|the|my) (?:\w+ )?(?:lives?|works?|goes?|sleeps?|stays?)
    |clone (?:the |their |his |her )?(?:badges?|key ?cards?|keys|sim cards?)
    """
)
_PRIES: Final = whole_words(
    rf"""
    (?:reads?|open|look (?:at|into|through)|go through|listen to|cop(?:y
    |ies)) (?:the |my |our |his |her |that )?{PEOPLE}['\u2019]s? (?:\w+ )?(?:(?:e-?)?mails?|inbox|messages|chats?
    |calls|diary|letters|texts)|(?:cop(?:y|ies)|download|export|move|forward|send|upload|take
    |save)\b.{{0,60}}\b(?:to|onto|on|into) my (?:own |private|personal |home )(?:\w+ )?(?:drive|account|mail\w*
    |stick|laptop|computer|cloud|server|disk|phone)|(?:records?|logs?|films?|tracks?|watch\w*|monitors?) (?:what
    |everything|whatever|when|where) (?:the |my |our|his |her ){PEOPLE} (?:types?|says?|writes?|does|do|is|goes)
    """
)
"""Something of somebody who is near, or of an employer, is looked at or taken."""
_AFTER: Final = re.compile(
    r"\W+(?:\w+\W+)?(?:detect|scanner|protect|prevent|filter|awareness|removal|defen|classifi|attempt)",
    re.IGNORECASE,
)
_PAUSE: Final = re.compile(r"[,;:\u2013\u2014]")
_MOST_TOLD: Final = 80
_NEAR: Final = 60
"""Characters before something harmful in which it is said that something is done against it."""


def harm(text: str, known: dict[str, Found]) -> Found:
    """What of it is meant to harm, or may be, with the words that say so. known: what is known of sentences; is added
    to."""
    parts = sentences("\n".join(" ".join(piece.split()) for piece in re.split(r"\n\s*\n", text)))
    for part in parts:
        if part not in known:
            known[part] = list(_of_sentence(part))
    found = [sign for part in parts for sign in known[part]]
    if not found and (hushed := next((match for part in parts if (match := _COVERT.search(part))), None)):
        taken = any(_TAKES.search(part) and _PERSONAL.search(part) for part in parts)
        found = [(Sign.DOUBTFUL, hushed.group()[:_MOST_TOLD])] if taken else []
    if not found and any(map(_WATCHED.search, parts)):
        altered = [match for part in parts if not _EXPLAINS.match(part) and (match := _ALTERS.search(part))]
        found = [(Sign.DOUBTFUL, match.group()[:_MOST_TOLD]) for match in altered[:1]]
    return list(dict.fromkeys(found))


def _of_sentence(part: str) -> Iterator[tuple[Sign, str]]:
    if match := _VIOLENT.search(part):
        yield Sign.HARMFUL, match.group()
        return
    if match := _FINDS_PEOPLE.search(part) or _PRIES.search(part):
        yield Sign.HARMFUL, match.group()[:_MOST_TOLD]
        return
    if _EXPLAINS.match(part):
        return
    for sign, ways in ((Sign.HARMFUL, _meant), (Sign.DOUBTFUL, _doubtful)):
        for match in ways(part):
            if not _defended(part, match):
                yield sign, match.group()[:_MOST_TOLD]
                return


def _meant(part: str) -> Iterator[re.Match[str]]:
    for pattern in (_MALWARE, _WITHOUT_PAYING, _FINDS_PEOPLE):
        yield from pattern.finditer(part)
    yield from deceives(part)
    covert, taken, private = _COVERT.search(part), _TAKES.search(part), _PERSONAL.search(part)
    if covert and (taken or private):
        yield covert
    if not _IN_A_TEST.search(part):
        yield from _STOLEN.finditer(part)
    if (other := _SOMEBODY_ELSES.search(part)) and (attack := _ATTACKS.search(part)):
        yield max(other, attack, key=lambda one: one.start())
    if taken and private and (_QUIET.search(_BENIGN_QUIET.sub(" ", part)) or _UNASKED.search(part)):
        yield taken
    if (copied := _COPIES.search(part)) and _AWAY.search(part):
        yield copied


def _doubtful(part: str) -> Iterator[re.Match[str]]:
    yield from disclosed(part)
    yield from _UNFAIR.finditer(part)
    if _COVERT.search(part) and any(clause.wants is not Wants.NOTHING for clause in clauses(part)):
        yield from _COVERT.finditer(part)
    quiet = _QUIET.search(part) and _QUIET.search(_BENIGN_QUIET.sub(" ", part))
    if quiet and (_PERSONAL.search(part) or _AWAY.search(part)):
        yield quiet


def _defended(part: str, match: re.Match[str]) -> bool:
    """Whether that is what something is to be done against."""
    before = _PAUSE.split(part[max(0, match.end() - _NEAR - len(match.group())) : match.end()])[-1]
    return _DEFENDS.search(_NOT_DEFENDS.sub(" ", before)) is not None or _AFTER.match(part, match.end()) is not None
