"""What of an order could do much harm to what is in use: by what it acts on, and whether that can be taken back."""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Final

from claudomator_py.routing.orders import EITHER, Clause, Found, Sign, Wants, clauses, sentences, whole_words
from claudomator_py.routing.protected import in_somebodys_system, is_code, is_text, protected, refers_back, to_many
from claudomator_py.routing.scope import only_own

_LIVE: Final = whole_words(
    r"""
    (?:is|are|goes|go) live|prod(?:uction)?|(?<!to )(?<!to-)live (?!stream|view|preview|data in|search|reload|coding
    |region|chat|of)\w+|live search (?:cluster|index|servers?|service)|real (?:ledger|money|customers?|payments?
    |orders?|accounts?|stock|users?|database)|(?:customer|user|public)-facing (?:database|cluster|servers?|systems?
    |environment)|main (?:database|db|cluster)|in the field|\w+ system itself|on live|in live
    """
)
_NOT_LIVE: Final = whole_words(
    r"""
    (?:copy|dump|clone|snapshot|backup|export|data|rows|logs?|metrics|image tag) (?:of|from
    |as) (?:the |our )?prod\w*|production[- ](?:ready|like|grade|quality|code|build|bundle|mode|traffic|(?:data|dump
    |logs?|copy)(?! (?:store|servers?|cluster|database|bucket|volume)))|(?:like|as|than|from|before|until
    |outside) (?:in |on |it reaches )?(?:the |our )?prod\w*|for production use|(?:not|never|nothing) (?:\w+ )?(?:in
    |on|to|touch\w*) prod\w*|non-production|pre-?prod\w*
    """
)
_HARMLESS_RUN: Final = whole_words(
    r"""
    dry[- ]run|read[- ]only|(?:only )?on (?:a )?(?:local|scratch) \w+
    """
)
_SO_TRIED: Final = re.compile(
    r"\W*(?:but |and )?(?:only |just )?(?:as |in )?(?:an? )?(?:dry[- ]run|read[- ]only)(?: mode)?\W*", re.IGNORECASE
)
"""It says of the clause before it that this changes nothing."""
_ACTS: Final = whole_words(
    r"""
    drop|delete|remove|purge|truncate|wipe|erase|fail\b.{0,40}\bover|failover|deploy|roll (?:it|them|this|out|back
    |the)|rollout|rollback|apply|run|execute|retry|rotate|exchange|replace|swap|restart|reboot|push|release|resend
    |re-?send|scan|load[- ]test\w*|migrate|switch\b.{0,30}\b(?:off|on|over)|turn (?:off|on)|disable|enable|shut|stop
    |kill|restore|revoke|reset|scale|resize|upgrade|promote|cut over|flush|update|set|change|move|attack|exploit
    |reboot|patch|install|merge|backfill|import|load
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
_WRITTEN: Final = whole_words(
    r"""
    runbook|checklist|playbook|postmortem|post-mortem|proposal|documentation|docs?|readme|guide|tutorial|changelog
    |release notes|slides|(?<!and )report|summary|overview|comparison|diagram|glossary|faq|essay|article|adr
    """
)
_THEN_DO: Final = whole_words(
    r"""
    (?:and|then|and then)\s+(?:then\s+)?(?:run|execute|apply|deploy|publish|delete|drop|push|send|roll|do) (?:it
    |them|that|this|the|all)
    """
)
_PUBLISHED: Final = whole_words(
    r"""
    publish\w*\b.*\b(?:pypi|npm|docker ?hub|maven|crates(?:\.io)?|rubygems|nuget|registr(?:y|ies)|app ?store
    |play ?store|marketplace)|push(?:ed)?\b.{0,40}(?:with force|--force\S*|-f)|force[- ]push\w*(?! (?:guard|check
    |button|warning|tests?|protection|option|flag|dialog|rule|event)s?)|push --force\S*
    |rewrit\w+ (?:the )?(?:git )?history|filter-(?:repo|branch)|delete the (?:tag|branch|release).*\b(?:origin
    |remote|mirrors?)|branch protection|(?:unpublish|yank)\b.*\b(?:version|release|package)
    """
)
_MONEY: Final = whole_words(
    r"""
    refund (?:all|the|every|them|these|\d+)\w*|run the (?:refund|payout|billing|invoic\w+|charge|payroll)\w*
    |(?:retry|repeat|release|execute|trigger|send) (?:the )?(?:\w+ ){0,3}(?:payouts?|payments?|refunds?|transfers?
    |charges?|payroll)|charge (?:all|the|every|each|\d+) (?:\w+ )?(?:customers?|cards?|accounts?|users?)|(?:wire
    |transfer) (?:the )?(?:money|funds|\d)|pay (?:out|the invoices?)
    """
)
_CREDENTIALS: Final = whole_words(
    r"""
    (?:rotate|exchange|revoke|reissue|invalidate|replace)\b.{0,60}\b(?:credentials?|secrets?|private keys?
    |signing keys?|api keys?|passwords?|certificates?|tokens)|(?:private key|certificate|credentials?
    |api keys?)\b.{0,40}\b(?:be )?(?:rotated|exchanged|revoked|replaced)
    """
)
_IRREVERSIBLE: Final = whole_words(
    r"""
    (?:terraform|tofu|pulumi) destroy|kubectl (?:delete|drain)|(?:delete|remove|erase) (?:\w+ ){1,5}(?:for good
    |permanently|forever)|rm -rf? (?:--no-preserve-root )?[/~]\S*|drop (?:the )?(?:database|schema|production)
    |(?:delete|erase|purge) (?:all|every|the) (?:\w+ )?(?:backups?|customers?|accounts|user data|customer data
    |volumes?|buckets?)|can(?:not|'t|no longer) be (?:undone|taken back|restored|recovered)|irrevocabl[ey]
    |irreversibl[ey]
    """
)
_SHELL: Final = re.compile(
    r"\brm\s+(?:-\S+\s+)*-\w*[rR]\w*\s+(?:-\S+\s+)*(?:/|~/?|\$HOME/?|\*)(?=[\s*`\"',.;]|$)|\bdd\b.{0,60}\bof=/dev/\S+"
    r"|\bmkfs\S*\s+/\S+|\bshred\b.{0,40}/dev/\S+|>\s*/dev/(?:sd|nvme|vd|hd)\w+"
)
"""Commands that leave nothing of a disk."""
_EVERYBODY: Final = re.compile(
    r"^\W*(?:(?:please|now|then)\s+)*(?:"
    r"(?:refund|charge|reimburse|revoke|invalidate|reset|rotate|suspend|cancel|lock)\b.{0,40}\b(?:all|every|each)\b"
    r".{0,30}\b(?:customers?|users?|orders?|accounts?|subscriptions?|tenants?|members|payments?)|"
    r"(?:wire|transfer) (?:the |all )?(?:money|funds|\d[\d.,]*)|"
    r"fail\b.{0,30}\b(?:primary|database|region|cluster)\b.{0,30}\bover)\b",
    re.IGNORECASE,
)
"""It is done at once, to what is in use, whether or not the text says where."""
_NOBODYS: Final = whole_words(
    r"""
    staging|sandbox\w*|demo|fixtures?|mock\w*|fake|local\w*|(?<!we )(?<!you )(?<!they )(?<!i )tests?|test \w+
    |(?<!/)dev(?!/)|development|scratch|seed(?:ed)?
    """
)
_THERE: Final = whole_words(
    r"""
    (?:in|on|at|to|from|into|onto|against|off|across|via|through|over|under
    |of) (?:the |our |all |every |both |this |that)*(?:\w+[ -]){0,2}?(?:prod(?:uction)?|live)
    """
)
_FROM_LIVE: Final = whole_words(
    r"""
    (?:from|off|out of) (?:the |our )?(?:prod(?:uction)?|live \w+)(?! (?:dump|copy|export|logs?|data|backup
    |snapshot))
    """
)
_WRITES: Final = whole_words(
    r"""
    write|draft|plan|describe|document|outline|explain|propose|sketch|summari[sz]e|list|design|recommend|suggest
    |specify|compare|prepare|review|estimate|discuss|how|why|what|whether|assess|audit|research|model|study
    |analy[sz]e|define|draw
    """
)
_PUBLISHES: Final = whole_words(
    r"""
    publish (?!an? (?:\w+ )?\w*event|\w*events|an? message|messages|.*\b(?:artifact|coverage|internal
    |staging))(?=\S)|(?:post|tweet|share|announce|publish)\b.{0,60}\b(?:twitter|linkedin|facebook|mastodon|instagram
    |blog|social media|press|reddit|status page)|(?:upload|push|roll|ship|release|deploy|install|send
    |flash)\b.*\b(?:firmware|fleet|all (?:devices|phones|terminals|machines|clients|servers|hosts|employees))
    |(?:delete|remove|pull|take)\b.*\b(?:from|off) (?:npm|pypi|maven|rubygems|docker ?hub)(?! \w)|(?:put|post|push
    |upload|publish|share)\b.*\b(?:on|to|in|into) (?:a |the )?public (?:\w+ )?(?:repo\w*|gist|bucket|site)
    |take \S+ off \b(?:pypi|npm|the \w*\s?store|the market\w*)|(?:sign|release|ship|push)\b.*\b(?:update channel
    |channel|release channel|stable channel)|(?:upload|submit|release|ship|publish|push|post|announce)\b.*\b(?:pypi
    |npm|docker ?hub|maven|crates(?:\.io)?|rubygems|nuget|registr(?:y|ies)|app ?store|play ?store|marketplaces?
    |mailing list|to (?:everyone|everybody|the public|all (?:users|customers)))|(?:make|turn|flip|toggle|set|switch
    |change)\b.*\b(?:repo\w*|bucket|package|project|dashboard|document|page)\b.*\b(?:world-readable|readable (?:by
    |for|to) (?:all|any|every)\w*|open to (?:the world|every\w+)|public(?= *(?:$|[.,;:!)])| (?:and|so|to|now|again
    |for|in|by|at|until|as)\b))|(?:delete|rename|move)\b.{0,20}\b(?:default|main|master|protected|release) branch
    |(?:delete|archive|rename|transfer|remove)\b.*\b(?:repos?|repositor(?:y|ies)|forks?|releases?)\b.*\b(?:github
    |gitlab|public|for good|permanently|forever|all|remote)|(?:yank|unpublish|deprecate)\b.*\b(?:pypi|npm|registr\w+
    |\d+\.\d+\S*)|(?:squash|rewrite|amend|rebase)\b.*\b(?:main|master|release|shared|published)\b.*\b(?:push
    |history)
    """
)
_PAYS: Final = whole_words(
    r"""
    (?:transfer|wire|move|send)\b.{0,40}\b(?:balance|funds|money|amounts?|payouts?|deposit|sum)\b.{0,30}\b(?:to|from
    |into|of)|charge back\b.*|(?:pay|charge|debit|bill|refund|reimburse|credit(?! card| limit)|withdraw|capture
    |settle)\b.{0,60}\b(?:cards?|invoices?|salar(?:y|ies)|wages|suppliers?|sellers?|vendors?|payouts?|customers
    |subscribers|members|money|funds|deposits?|euros?|dollars|bonus(?:es)?|fees|balance|rent|amounts?|commissions?)
    |pay out\b.*|(?:issue|cancel|void|correct|re-?send|write off|mail)\b.{0,60}\b(?:credit notes?|invoices?
    |vouchers?|payslips?|dunning \w+) (?:for|of|to|that|which|from|in)|(?:mark|increase|raise|lower|reduce|change
    |cut|set|adjust|correct)\b.{0,40}\b(?:all|every|each|\d[\d.,]* ?%|\d+ percent|by \d).{0,40}\b(?:invoices?
    |salar(?:y|ies)|prices?|wages|fees|payroll|credit limits?|articles)|(?:increase|raise|lower|reduce
    |cut)\b.{0,30}\b(?:salar(?:y|ies)|wages|payroll)
    """
)
_OPENS: Final = whole_words(
    r"""
    (?:make|add|promote|set)\b.{0,40}\b(?:an? |as |to )(?:owner|admin\w*|maintainer|superuser|root)
    |merge\b.*\b(?:without|despite|ignoring|skipping)\b.*\b(?:checks?|reviews?|tests?|ci|approvals?)|(?:give|grant
    |assign|make|add)\b.{0,60}\b(?:admin\w*|root|sudo|superuser|owner|full|write|production
    |unrestricted)(?: (?:rights?|access|permissions?|role|privileges?))|(?:disable|deactivate|lock|suspend|unlock
    |terminate|close|delete|remove|block)\b.{0,40}\b(?:accounts?|users?|logins?|mailbox(?:es)?|employees|people
    |customers) (?:of|for|in|from|whose|listed|named|\d+|on)|(?:turn|switch|disable|deactivate|suspend|pause|stop
    |silence|shut|lift|remove)\b.{0,30}\b(?:mfa|2fa|two-factor|multi-factor|sso|firewall|anti-?virus|waf|encryption
    |audit (?:log\w*|trail)|branch protection|backups?|monitoring|alerting|ids|intrusion detection)|(?:open|expose
    |forward)\b.{0,30}\bports?\b|(?:allow|block|ban|whitelist|blacklist)\b.{0,30}\b(?:ips?|ip range|traffic
    |addresses|the internet|countr(?:y|ies))|reset\b.{0,40}\bpasswords? (?:of|for)
    """
)
_SWITCHES: Final = whole_words(
    r"""
    let\b.*\bgo live|put\b.*\blive|(?:point|change|switch|move|transfer|delete|renew|cut|remove|add|update
    |set)\b.{0,40}\b(?:dns|domains?|name ?servers?|(?:mx|a|txt|cname|ns) (?:entr(?:y|ies)|records?)|cnames?)
    |(?:switch|shift|move|route|redirect|send|cut|drain|fail)\b.{0,40}\btraffic|(?:purge|flush|invalidate|clear
    |empty)\b.{0,30}\bcdn|(?:fail(?:-?over)?|perform|trigger|initiate|do|force|start|run|execute
    |activate)\b.{0,50}\b(?:fail-?over|over to|disaster recovery|emergency \w+)|promote\b.*\b(?:primary|master
    |leader)|failover\b.*\bto|(?:enable|activate|turn|roll|release|flip|toggle|switch|open|set
    |put)\b.{0,60}\b(?:100 ?%(?: of)?(?: our| the)? (?:users|customers|traffic|tenants)|for (?:all|every
    |each)(?: of)?(?: our| the)? (?:users?|customers?|tenants?|accounts?|shops?|markets|merchants?|partners?
    |countries|country|regions?|stores?|sellers?|devices?)|for (?:everybody|everyone)|worldwide|globally)|(?:reboot
    |shut ?down|shut|restart|decommission|power)\b.{0,40}\b(?:servers?|hosts?|routers?|switch(?:es)?|nodes?|cluster
    |data cent(?:re|er)|machines?|primary|master)\b.{0,30}\b(?:all|in|on|now|tonight|at|of|\d+)|(?:roll|revert
    |undo)\b.{0,40}\b(?:release|deployment|deploy|rollout)|(?:approve|authori[sz]e|sign|accept
    |confirm)\b.{0,40}\b(?:payments?|contracts?|orders?|change requests?|purchases?)
    """
)
_REPLACES_KEYS: Final = whole_words(
    r"""
    (?:roll|rotate|revoke|exchange|re-?issue|invalidate|swap|renew|withdraw|expire)\b.{0,60}\b(?:credentials?
    |secrets?|keys?|key pairs?|passwords?|certificates?|certs?|tokens?|sessions)
    """
)
_DELETES: Final = whole_words(
    r"""
    (?:delete|purge|wipe|erase|destroy|nuke|empty|drop|overwrite|shred|format)\b.{0,60}\b(?:buckets?|backups
    |snapshots|volumes|namespaces?|tenants?|mailbox(?:es)?|repositor(?:y|ies)|disks?|partitions?|customers|accounts
    |audit logs?|archives?|(?:user|customer|account|tenant|order) [#\d]\S*|everything (?:of|from|about|in))
    """
)
_WRITES_TO_MANY: Final = whole_words(
    r"""
    (?:send|push|mail|email|e-mail|text|sms|dm|ping|blast|notify|broadcast|inform|message|write|announce|invite
    |call)\b.{0,80}\b(?:all|every|each|\d[\d.,]{2,}|both|our|whole|entire|everybody|everyone|anyone|people who
    |those who)\b.{0,30}\b(?:users|customers?|subscribers?|members|recipients|clients|buyers|sellers|players|tenants
    |patients|students|guests|owners|drivers|applicants|employees|staff|partners|leads|contacts|list|base|who|with
    |that)
    """
)
_ORDERED: Final = (
    (Sign.PUBLISHED, _PUBLISHES),
    (Sign.MONEY, _PAYS),
    (Sign.ACCESS, _OPENS),
    (Sign.LIVE, _SWITCHES),
    (Sign.LIVE, _EVERYBODY),
    (Sign.CREDENTIALS, _REPLACES_KEYS),
    (Sign.IRREVERSIBLE, _DELETES),
    (Sign.MASS_MAIL, _WRITES_TO_MANY),
)
"""What is done to what is in use, whether or not the text says where: each begins with the verb."""
_UNKNOWN: Final = re.compile(
    r"\W*(?!(?:we|i|you|he|she|it|they|there|this|that|these|those|the|an?|our|my|in|on|at|for|from|with|if|when|since|as|of|to"
    r"|after|before|during|because|all|every|some|no|not|is|are|was|were)\b)[a-z]+(?<!s)(?<!ed)(?<!ing)(?<!ly) "
    r"(?:the|an?|all|every|each|this|these|those|our|my|its|their|it|them|both|\d|`)",
    re.IGNORECASE,
)
"""It begins like an order, with a verb that is not among those that are known."""
_PURPOSE: Final = whole_words(
    r"""
    to|that|which|who|whose|where|for|with|so|can|could|should|will|would|lets?
    """
)
"""What comes after it is what something built is for, as "a button to refund and cancel orders"."""
_HEADING: Final = re.compile(r"\W*(?:\w+ ){0,2}\w+: ")
"""A few words that say what it is about."""
_GERUND: Final = re.compile(r"(?!(?:bring|ping)\b)[a-z-]+ing\b", re.IGNORECASE)
_MOST_TOLD: Final = 80
_CROWDED: Final = 20
"""A sentence with more orders takes as long as a hundred others: each order is compared with all that follows it."""
_MOST_CROWDED: Final = 200
"""Such sentences that are read of a text. Nobody writes more of them to be understood, so a person is to look."""
_NOT_ALL_READ: Final = (
    f"more than {_MOST_CROWDED} sentences of over {_CROWDED} orders each, of which the rest is not read"
)
_CREDENTIAL: Final = whole_words(
    r"""
    keys?|credentials?|secrets?|passwords?|certificates?|tokens?
    """
)
_LEAKED: Final = whole_words(
    r"""
    (?:(?:signing|private|secret|deploy|api|access|ssh|gpg|release|encryption|\w+['\u2019]s) keys?|credentials?|secrets?
    |passwords?|certificates?|tokens?|ca)(?: (?:of|for|on|with)(?: \S+){1,4}?)? (?:(?:is|are|was|were|has|have|had
    |got)(?: \S+){0,3}? )?(?:leaked|exposed|stolen|compromised|committed|lost|known to|seen in|turned up|out|posted
    |expired|burnt|in (?:a|the) (?:public|logs?|chat|gist))|(?:leaked|exposed|stolen|compromised|lost|posted|committed
    |left with|lost control of|got hold of|copied) (?:\S+ ){0,3}(?:keys?|credentials?|secrets?|passwords?
    |certificates?|tokens?)
    """
)
"""A credential is known to somebody who must not know it, or of no more use."""
_REPLACES: Final = frozenset(
    {"change", "deactivate", "delete", "disable", "drop", "exchange", "kill", "regenerate", "remove", "renew"}
    | {"replace", "reset", "retire", "roll", "swap", "withdraw"}
)
_WITHDRAWS: Final = frozenset({"revoke", "rotate", "invalidate", "reissue", "re-issue"})
_DESTROYS: Final = frozenset(
    {"drop", "delete", "truncate", "wipe", "purge", "erase", "kill", "restart", "reboot", "revoke", "restore", "empty"}
    | {"roll", "rollback", "failover", "flush", "drain", "terminate", "stop", "overwrite", "reset", "scale", "detach"}
)


def danger(text: str, known: dict[tuple[str, str | None, str], Found]) -> Found:
    """What of it touches what is in use, cannot be undone, or is public; with the words that say so. known: what is
    known of sentences; is added to."""
    parts = sentences(text)
    live = next((match.group() for part in parts if (match := _live(part))), None)
    found: Found = []
    crowded = 0
    for before, part in pairwise(["", *parts]):
        crowded += sum(one.wants is not Wants.NOTHING for one in clauses(part)) > _CROWDED
        if crowded > _MOST_CROWDED:
            found.append((Sign.DOUBTFUL, _NOT_ALL_READ))
            break
        if (part, live, before) not in known:
            known[part, live, before] = list(_of_sentence(part, live, before))
        found += known[part, live, before]
    leaked = _LEAKED.pattern.search(" ".join(parts)) is not None
    if leaked or _CREDENTIAL.pattern.search(text):
        acting = (one for part in parts for one, tail in _acting(part) if not _NOBODYS.search(tail))
        found += [(Sign.CREDENTIALS, _told(one.text)) for one in acting if _withdraws(one, leaked)]
    return list({sign: (sign, words) for sign, words in reversed(found)}.values())[::-1]


def _withdraws(clause: Clause, leaked: bool) -> bool:
    """Whether it ends the use of a credential that the text names. leaked: it says that somebody else has it."""
    return clause.verb in _WITHDRAWS or (leaked and clause.verb in _REPLACES and not is_text(clause))


def _live(text: str) -> re.Match[str] | None:
    return _LIVE.search(_NOT_LIVE.sub(" ", text)) if _LIVE.may_match(text) else None


def _of_sentence(part: str, live: str | None, before: str) -> Iterator[tuple[Sign, str]]:
    """live: the words with which any sentence names what is in use; None: none does. before: the sentence before."""
    part = _without_trials(part)
    for clause, tail in _acting(part):
        here = _live(tail) if clause.wants is Wants.DONE else _THERE.search(_NOT_LIVE.sub(" ", tail))
        destroys = clause.verb in _DESTROYS
        if here is not None or (destroys and _FROM_LIVE.search(tail)):
            yield Sign.LIVE, _told(tail)
        if to_many(clause, tail):
            yield Sign.MASS_MAIL, _told(tail)
        if _NOBODYS.search(tail):
            continue
        if here is None and only_own(clause, part):
            continue
        if in_somebodys_system(clause, part):
            yield Sign.LIVE, _told(part)
        for sign in protected(clause, tail):
            yield sign, _told(tail)
        if refers_back(clause) and not _NOBODYS.search(meant := f"{before} {part[: part.index(clause.text)]}"):
            for sign in protected(clause, tail, meant):
                yield sign, _told(tail)
        if here is None and live is not None and destroys:
            yield Sign.LIVE, f"{_told(clause.text)} ... {live}"
        ordered = f"{clause.verb} {clause.text}" if clause.at is None else _in_the_imperative(clause, tail)
        for sign, pattern in _ORDERED:
            # What is published is code, too.
            if pattern.match(ordered) and (sign is Sign.PUBLISHED or not is_code(clause)):
                yield sign, _told(tail)
    if not _only_words(part) and (match := _SHELL.search(part)):
        yield Sign.IRREVERSIBLE, match.group()
    if _only_words(part) or (_WRITTEN.search(part) and not _THEN_DO.search(part)):
        return
    for sign, pattern in ((Sign.PUBLISHED, _PUBLISHED), (Sign.IRREVERSIBLE, _IRREVERSIBLE)):
        if match := pattern.search(part):
            yield sign, match.group()
    if live is None:
        return
    for sign, pattern in ((Sign.MONEY, _MONEY), (Sign.CREDENTIALS, _CREDENTIALS)):
        if match := pattern.search(part):
            yield sign, match.group()
    if _live(part) and (match := _ACTS.search(part)):
        yield Sign.LIVE, f"{match.group()} ... {live}"


def _without_trials(sentence: str) -> str:
    """The sentence without the clauses that change nothing, as they say: what another one orders is done."""
    if _HARMLESS_RUN.search(sentence) is None:
        return sentence
    parts = [clause.text for clause in clauses(sentence)]
    for part, following in pairwise([*parts, ""]):
        if _HARMLESS_RUN.search(part) or _SO_TRIED.fullmatch(following):
            sentence = sentence.replace(part, "", 1)
    return sentence


def _acting(sentence: str) -> Iterator[tuple[Clause, str]]:
    """The clauses that act on what there is, each with the rest of the sentence from there on."""
    found = clauses(sentence)
    if found and found[0].wants is Wants.NOTHING and _UNKNOWN.match(sentence) and _THERE.search(sentence):
        yield replace(found[0], wants=Wants.DONE, at=0), sentence
    leads = next((one for one in found if one.wants is not Wants.NOTHING), None)
    if leads is None or (_tells(leads) and not _THEN_DO.search(sentence)):
        return
    place = 0
    for one in found:
        place = sentence.index(one.text, place)
        tail = sentence[place:]
        if _HEADING.match(tail):
            continue
        if one.wants is Wants.BUILT:
            acts = one.verb in EITHER
        else:  # what is built may do anything
            apart = leads.wants is not Wants.BUILT or not _PURPOSE.search(sentence[sentence.index(leads.text) : place])
            acts = one.wants is Wants.DONE and (apart or _live(one.text) is not None)
        if acts:
            yield one, tail


def _in_the_imperative(clause: Clause, tail: str) -> str:
    """The order from its verb on, as "wipe the disks" for "wiping the disks"."""
    text = tail[clause.at :]
    return text if (form := _GERUND.match(text)) is None else f"{clause.verb}{text[form.end() :]}"


def _tells(clause: Clause) -> bool:
    """Whether it asks for a text."""
    return clause.wants is Wants.WORDS and _WRITES.match(clause.verb or "") is not None


def _told(text: str) -> str:
    return text[:_MOST_TOLD].strip(" .")


def _only_words(sentence: str) -> bool:
    """Whether it asks for words about something, and not for the thing itself."""
    return (_ONLY_WORDS.search(sentence) is not None or any(map(_tells, clauses(sentence)[:1]))) and _THEN_DO.search(
        sentence
    ) is None
