"""What an order acts on that has to be protected, by classes: a kind of act, and the things for which it is dangerous.

To delete, to pay or to restart is nothing by itself, and neither is a backup, an invoice or a server: the pair is. Of a
piece of code, or of a page that shows such a thing, nothing is held: "remove the backup column" deletes no backup.
Whatever is in no class is held if it is felt at once: an act that is no change of a text, on something definite.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from claudomator_py.routing.orders import Clause, Sign, whole_words
from claudomator_py.routing.prefilter import Prefiltered, prefiltered


@dataclass(frozen=True, slots=True)
class _Class:
    """Acts that are dangerous to things of a kind."""

    sign: Sign
    verbs: frozenset[str]
    things: Prefiltered


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_CODE: Final = whole_words(
    r"""
    components?|buttons?|forms?|dialogs?|modals?|pages?|fields?|columns?(?! to)|class(?:es)?|functions?|methods?
    |variables?|modules?|widgets?|icons?|labels?|templates?|styles?|sidebar|banner|charts?|parser|readme|docs?
    |documentation|tutorial|handbook|glossary|guides?|diagrams?|samples?|menu|tooltip|headings?|headers?|footer
    |views?|hooks?|fixtures?|lint\w*|types?|imports?|constants?|enum|unit|spinner|layout|colou?rs?|wording
    |(?<!\.)examples?|typos?|grammar|(?:the|some|\w+ [A-Z]+) code|comments?|changelog|storybook|screens?|sheet|spec
    |helpers?|simulation|librar(?:y|ies)|packages?|dependenc(?:y|ies)|frameworks?|scripts?|constructors?|getters?
    |setters?|decorators?|reducers?|selectors?|lexer|tokenizer|dict|in the (?:code|ui|model)|\w+\.(?:py|tsx?|jsx?|rs
    |go|md|css|html|java|rb|c|cpp|kt|swift)
    """
)
"""Where one of these is meant, a protected thing is only shown, named or programmed."""
_MANY: Final = (
    r"(?:all|every|each|both|any|our|two|three|four|five|ten|\d[\d.,]*|the (?:whole|entire|remaining|former|old|new))"
)
_PERSON: Final = r"(?:customers?|users?|clients?|members?|patients?|tenants?|guests?|employees?|partners?|subscribers?)"
_MACHINES: Final = (
    r"(?:servers?|hosts|nodes|machines|computers?|workstations?|instances|clusters?|gateways?|routers?|front ends"
    r"|load balancers?|data cent(?:re|er)s?|replicas?|terminals?|tills?|kiosks?|meters|sensors|turbines|pumps"
    r"|cameras|vehicles|devices|phones|laptops|firewalls?)"
)
_CLASSES: Final = (
    _Class(
        Sign.IRREVERSIBLE,
        _set("delete remove purge wipe erase destroy nuke empty drop truncate shred discard clean clear prune expire")
        | _set("overwrite retire scrub trash obliterate flatten zap reformat dump"),
        whole_words(
            rf"""
            clusters?|storage (?:arrays?|pools?|accounts?)|(?:all|every|each) {_PERSON}|buckets?|backups?|snapshots?
            |off-?site cop(?:y|ies)|(?:recovery|restore) points?|replicas?(?! (?:counts?|numbers?))|production data
            |volumes?|namespaces?|tenants?|mailbox(?:es)?|disks?|partitions?|databases?|schemas?|recordings?
            |archives?|audit (?:logs?|trail|tables?|records?)|evidence|{_PERSON}(?:['\u2019]s?)? (?:\w+ )?(?:rows?
            |records?|data|accounts?|files?|entries|tables?|uploads|photos|documents|messages)|(?:rows?|records?|data
            |everything|accounts?|uploads|photos|documents|messages) (?:of|from|about) (?:\w+ ){{0,2}}{_PERSON}
            |laptops?|(?:company )?phones|domains?|repositor(?:y|ies)|releases
            |contracts|invoices|orders|payments|(?:branch(?:es)?|tags?)\b.{{0,40}}\b(?:origin|remote|upstream|github
            |gitlab)|images?\b.{{0,20}}\bregistry|shared (?:\w+ )?(?:exports?|drives?|disks?|folders?|volumes?)
            |dead letters|queue of \w+|var/log|(?:system|access|auth|security) logs?|shell history
            """
        ),
    ),
    _Class(
        Sign.LIVE,
        _set("restart reboot stop shut kill terminate decommission drain reset failover upgrade downgrade patch flash")
        | _set("apply reimage suspend power roll factory-reset install reinstall unplug reformat promote"),
        whole_words(
            rf"""
            {_MANY} (?:[\w-]+ ){{0,3}}?(?:{_MACHINES}|sites|shops|stores|branches)|the (?:[\w-]+ )?(?:{_MACHINES}
            |web ?site|site|shop|store|webshop|cluster|fleet|primary|leader|replica
            |(?:primary|master|main) database)|firmware|over the air|(?:on|of
            |to|for) {_MANY}(?:\w+ )?(?:customers|users|clients|tenants)
            """
        ),
    ),
    _Class(
        Sign.LIVE,
        _set("update scale resize replace migrate switch point redirect move swap merge connect failover"),
        whole_words(
            rf"""
            {_MANY} (?:[\w-]+ ){{0,3}}?(?:{_MACHINES}|tenants|customers)|the (?:firewall|load balancer|fleet)
            |to the (?:standby|secondary|replica|(?:other|second|backup) (?:region|site|server|data cent(?:re|er)))
            |firmware|over the air|(?:apex|dns|mx|cname|txt|ns|a) (?:records?|entr(?:y|ies))|domains?|real (?:system
            |cluster|servers?)|(?:users|customers|traffic) of
            """
        ),
    ),
    _Class(
        Sign.IRREVERSIBLE,
        _set("format free reformat overwrite zero dd wipe erase repartition run"),
        whole_words(
            r"""
            (?:(?:hard|usb|boot|data|second|first) )?(?:disks?|drives?|partitions?)(?! (?:sizes?|usage|space|names?
            |labels?))|(?:first|second|data|backup) volume|dev/(?:sd|nvme|vd|hd|disk)\w+|mkfs\S*
            |(?:storage|disk) arrays?|boot (?:record|sector|loader)
            |memory sticks?|usb sticks?
            """
        ),
    ),
    _Class(
        Sign.ACCESS,
        _set("silence mute disable turn switch stop pause suspend snooze acknowledge deactivate unplug kill"),
        whole_words(
            r"""
            pager ?duty|opsgenie|pagers?|(?:fire|smoke|intruder|burglar|gas|security|production)[ -](?:alarms?
            |alerts?)|alarms|alerting|alerts|monitoring(?: agents?)?|watchdogs?|(?:smoke|gas|motion
            |intrusion) detect(?:ors?|ion)|alert for\b
            """
        ),
    ),
    _Class(
        Sign.ACCESS,
        _set("set raise lower put"),
        whole_words("(?:smoke|gas|motion|intrusion|alarm) (?:detectors?|thresholds?)|on-call \\w+ on hold"),
    ),
    _Class(
        Sign.MONEY,
        _set("pay repay refund reimburse compensate charge bill settle"),
        whole_words(
            "everybody|everyone|whoever|(?:all|those|people|customers) (?:who|that)|what we owe|debts?|outstanding \\w+"
        ),
    ),
    _Class(
        Sign.MONEY,
        _set("move shift sweep transfer send"),
        whole_words(
            "[\\d.,]+ ?(?:eth|btc|bitcoins?|euros?|dollars?|usd|eur|gbp|chf)|(?:hot|cold) wallet|ibans?|funds|money"
        ),
    ),
    _Class(
        Sign.MONEY,
        _set("purchase rent hire lease order buy upgrade"),
        whole_words(
            r"""
            (?:our|my|the) (?:plan|subscription|licen[cs]e)\b.{0,40}\bto|(?:\d{2,}|ten|twenty|fifty
            |a hundred) (?:[\w.-]+ ){0,2}?(?:instances|nodes|machines|gpus|servers|vms)|(?:yearly|annual|enterprise
            |paid|premium|business|monthly) (?:[\w-]+ ){0,2}?(?:plan|subscription|licen[cs]e|tier|contract)
            """
        ),
    ),
    _Class(
        Sign.MONEY,
        _set("order book purchase buy rent hire lease subscribe charge reserve put"),
        whole_words(
            r"""
            (?:company|team|corporate|business|department)(?:['\u2019]s)? (?:credit )?(?:cards?|accounts?|budget)
            |[\d.,]+ ?(?:euros?|dollars?|pounds?|usd|eur|gbp|chf) (?:a|per|each) \w+|(?:google|facebook
            |linkedin) ads
            """
        ),
    ),
    _Class(
        Sign.LIVE,
        _set("make elect"),
        whole_words(
            r"""
            the (?:new )?(?:leader|primary|master)(?! (?:key|colou?r|branch|action|\w+ key))
            |(?:standby|secondary|replica|follower)\b.{0,30}\b(?:leader|primary|master)
            """
        ),
    ),
    _Class(
        Sign.LIVE,
        _set("run do perform start trigger"),
        whole_words("(?:a|the) (?:factory[- ]reset|fail-?over|switch-?over)(?! (?:tests?|drills? on))"),
    ),
    _Class(
        Sign.LIVE,
        _set("failover"),
        whole_words(f"databases?|db|primary|master|regions?|zones?|brokers?|services?|shop|site|{_MACHINES}"),
    ),
    _Class(Sign.PUBLISHED, _set("tweet"), whole_words("(?:that|about|the|our|a)")),
    _Class(Sign.LIVE, _set("put set bring take"), whole_words("(?:into|in|to) maintenance(?: mode)?")),
    _Class(
        Sign.MONEY,
        _set("wire pay transfer send refund reimburse credit debit charge approve waive settle sell buy drain void")
        | _set("withdraw raise lower bump change increase reduce cut set put exchange double halve replace"),
        whole_words(
            r"""
            (?:euros?|dollars?|pounds?|usd|eur|gbp|chf|btc|eth|bitcoins?|coins)|[€$£]\s?\d\S*|money|funds|treasury
            |wallets?|salar(?:y|ies)|wages|payroll|payouts?|refunds?|reimbursements?|fees?|bills?|invoices?
            |balances?|credit limits?|ibans?|bank (?:details|accounts?|data)|(?<!direct )deposits?|prices?
            |\d+ ?% off|rent|bonus(?:es)?|interest rates?|tariffs?|premiums?|vouchers?
            """
        ),
    ),
    _Class(
        Sign.MONEY,
        _set("give hand"),
        whole_words(
            r"""
            money|funds|bonus(?:es)?|refunds?|rebates?|discounts?|vouchers?|deposits?|raise|credit(?! (?:scores?
            |ratings?|reports?|history|cards?))
            """
        ),
    ),
    _Class(
        Sign.MONEY,
        _set("run requeue release retry replay repeat execute trigger rerun re-run resume refund reimburse re-send"),
        whole_words(
            r"""
            payroll|payouts?|charges|refunds?|payments?|(?:payment|billing|ledger) \w+|billing|direct debits?
            |transfers|salar(?:y|ies)|people|persons|customers?|guests|members
            """
        ),
    ),
    _Class(
        Sign.ACCESS,
        _set("grant give make add promote hand assign"),
        whole_words(
            r"""
            authori[sz]ed[_ ]keys|(?:my|his|her|their) (?:\w+ )?(?:ssh|public) keys?|(?:an? |as )?(?<!-)(?:owners?
            |admin(?:istrator)?s?|(?<!no )root|sudo|superusers?|maintainers?)|(?:read|write|full|unrestricted
            |admin\w*|production) (?:access|rights?|permissions?|privileges?)|access to (?:the |our )?(?:real|live
            |production|customer\w*|billing|payroll)
            """
        ),
    ),
    _Class(
        Sign.ACCESS,
        _set("whitelist allowlist relax loosen weaken widen lower downgrade open change edit patch adapt set drop"),
        whole_words(
            r"""
            (?:every|any|all) (?:ips?|address(?:es)?|origins?|hosts?|countr(?:y|ies))|(?:password|security|access
            |firewall|bucket|s3|iam|acl|retention|sharing) (?:rules?|polic(?:y|ies)|requirements?|settings?
            |lists?)\b.{0,40}\b(?:so that|to (?:\w+ )?(?:four|five|six|none|nothing|zero|\d+)\b)|(?:any
            |every)(?:body|one) can (?:list|read|write|see|access|get|log|download|open)|(?:tls|ssl|encryption
            |ciphers?)\b.{0,40}\bto\b|lockout|counts? as (?:logged|signed|authenticated|an? admin)|(?:treated
            |taken) as (?:logged|signed|authenticated|an? admin)
            """
        ),
    ),
    _Class(
        Sign.ACCESS,
        _set("bypass"),
        whole_words("signatures?|certificates?|passwords?|permissions?|tokens?|mfa|identit(?:y|ies)|ages?"),
    ),
    _Class(
        Sign.ACCESS,
        _set("allow let open expose"),
        whole_words(
            r"""
            (?:every(?:body|one)|any(?:body|one)|all|people) in without|root (?:log-?in|access)|to the (?:internet
            |world|public|outside)|(?:write|push) to (?:all|every|any)|(?:sign|log)(?: |-)?in without
            |any\w* (?:address|ip|host|origin)?\b.{0,30}\b(?:firewall|panel|server|network)|through the firewall
            |access to (?:the |our )?(?:real|live|production|customer\w*|billing|payroll)|without (?:a )?password
            """
        ),
    ),
    _Class(
        Sign.ACCESS,
        _set("disable deactivate suspend lock unlock close skip bypass relax lift remove waive revoke stop turn switch")
        | _set("cancel end block pause silence remove"),
        whole_words(
            rf"""
            (?:fraud|security|required|status|safety|age|identity|virus|spam|abuse|access|plausibility|credit
            |password|signature|certificate|ssl|tls|token|permission|authori[sz]ation|authentication|origin|csrf
            |licen[cs]e|captcha) (?:and \w+ )?(?:certificate )?(?:verification|validation|checks?|filters?|scans?
            |scanner|controls?|monitoring|detection|limits?)|2fa|mfa|two-factor|multi-factor|branch protection
            |firewalls?|encryption|legal holds?|audit(?:ing| logs?| trail)|sso|backups?
            |{_MANY} (?:\w+ ){{0,3}}?(?:accounts?|logins?|subscriptions?|memberships?|contracts?|licen[cs]es)
            |(?:accounts?|logins?|subscriptions?|memberships?|users|contracts?) (?:of|for|in|from|that|whose)
            |auto-?renewal|authentication(?! (?:tests?|errors?|headers?|methods?|flows?|logic|tokens?))
            |approval (?:steps?|gates?|requirements?)|rate limits?|waf|intrusion detection|protection (?:of|on|for
            |from) (?:the )?[\w/-]+ branch
            """
        ),
    ),
    _Class(
        Sign.CREDENTIALS,
        _set("rotate replace exchange revoke invalidate reissue re-issue renew expire reset withdraw change"),
        whole_words(
            rf"""
            (?:{_MANY}|the) (?:[\w-]+ ){{0,2}}?(?:keys?|certificates?|certs?|tokens?|passwords?|secrets?
            |credentials) (?:of|on|for|from|that) (?:all|every|each|our|the (?:public|live|payment))|(?:every|all
            |each) (?:[\w-]+ ){{0,2}}?(?:(?:api|access|refresh|signing|ssh|private|master) (?:keys?|tokens?)
            |certificates?|passwords?|secrets|credentials)|{_PERSON}['\u2019]s? passwords
            """
        ),
    ),
    _Class(
        Sign.PUBLISHED,
        _set("publish post release push ship submit announce unpublish yank upload"),
        whole_words(
            r"""
            pypi|npm|crates(?:\.io)?|rubygems|maven|nuget|docker ?hub|(?:app|play) ?stores?|into the stores|twitter
            |linkedin|facebook|mastodon|instagram|press releases?|blog posts?|articles?|advisor(?:y|ies)|to (?:all
            |every|our) (?:\w+ )?(?:users|customers)|the latest (?:dist-)?tag|build \d+|from the registry
            """
        ),
    ),
    _Class(
        Sign.PUBLISHED,
        _set("transfer deregister archive rename sell give hand delete"),
        whole_words(
            r"""
            (?:private |public |the |our )repositor(?:y|ies)|the (?:public |private )?repo|domains?
            """
        ),
    ),
    _Class(Sign.PUBLISHED, _set("merge land ship"), whole_words("without (?:a |the )?(?:review|checks?|tests?)")),
    _Class(
        Sign.PUBLISHED,
        _set("delete erase remove drop reset replace overwrite retag rewrite wipe move"),
        whole_words(
            r"""
            (?:commits?|branch(?:es)?|tags?|history)\b.{0,40}\b(?:origin|upstream|remote|main|master|github|gitlab
            |public)|the (?:remote|upstream)(?= *(?:$|[.,;]| with| by))|tag over
            """
        ),
    ),
    _Class(
        Sign.PUBLISHED,
        _set("rewrite squash force force-push amend rebase"),
        whole_words(
            r"""
            history|main|master|upstream|(?:release|public|shared) (?:branch|repo\w*)
            """
        ),
    ),
)
_STRONG: Final = (
    _set("reboot restart shut stop terminate decommission freeze unfreeze reinstate reopen suspend revoke rotate undo")
    | _set("pay repay refund reimburse transfer wire charge credit debit waive cancel sell buy publish release yank")
    | _set("unpublish discard erase wipe purge destroy delete install flash drain deactivate reactivate close strip")
    | _set("extend hand enable notify send call text inform remind reverse swap exchange summon dismiss failover")
)
"""Verbs of acts that are felt at once, whatever they are done to."""
_ARTEFACT: Final = whole_words(
    r"""
    requests?|events?|e-?mails? in|languages?|tabs?|calendar|focus|scroll\w*|lock|buffers?|handles?|themes?
    |animations?|strings?|texts?|titles?|terms?|rules?|regex\w*|expressions?|log level|cach\w*|builds?|bundles?
    |images?|jobs?|threads?|mutants|scripts?|branch(?:es)?|prs?|commits?|versions?|librar(?:y|ies)|packages?
    |dependenc(?:y|ies)|config\w*|settings?|options?|flags?|toggles?|hash(?:es)?|columns?|tables?|collation
    |migrations?|index(?:es)?|quer(?:y|ies)|apis?|endpoints?|handlers?|urls?|https?|headers?|json|csv|yaml|toml|xml
    |markdown|html|css|sql|ui|keys? in the|cursor|pixels?|workers?|retr(?:y|ies)|timeouts?|editor|plugin|files?
    |folders?|white ?space|spaces|notes|output|lines?|words?|paragraphs?|links?|logs?|metrics?|traces?|messages?
    |slack|toolbar|mode|support|attention|notice(?:s)?|feature|refactor\w*|hover|touch|click|drag|drop-?down|input
    |array|list|map|object|pointer|memory|queue|socket|stream|session scope|transaction|linters?|mutation|coverage
    |pipelines?|ci|benchmark\w*|debug\w*|warnings?|errors?|exceptions?|stack|vim|parameters?|arguments?|attributes?
    |properties|metadata|repo\w*|patch\w*
    """
)
"""Things that a task for a coding agent is about; to act on one of these is to change text."""
_BEHAVIOUR: Final = whole_words(
    r"""
    when|whenever|if|once|after|before|until|while|unless|upon|on (?:click|close|error|exit|submit|unmount\w*
    |finish)
    """
)
"""What describes how a program is to behave, and orders nothing now."""
_WHOM: Final = re.compile(
    r"\W*[A-Za-z-]+(?<!ing)(?: (?:off|out|down|back|up|over))?"
    r" (?:(?:the|our|all|every|each|both|my|his|her|their|any)\b(?! (?:old|other|previous)(?: ones?)?\W*$)|\d|[A-Z])"
)
"""A verb and what it is done to: something definite, that it names itself. How else something is done ("by dropping
the flag") is judged by classes alone, as in "make the build faster by dropping the flag"."""
_TO_MANY: Final = prefiltered(
    r"\b(?:to|mail|e-?mail|text|call|notify|inform|invite|remind)\s+(?:all|every|each|(?:our|the|a) (?:whole|entire)"
    r"|everyone|everybody)\b.{0,40}?(?:holders?|base|list|audience|users|customers|subscribers|members|recipients"
    r"|clients|buyers|sellers|patients|parents|students|guests|owners|drivers|applicants|employees|staff|partners"
    r"|contacts|donors|suppliers|residents|everyone|everybody)\b|\bto (?:everyone|everybody)\b"
)
_TELLS: Final = _set("send mail e-mail email text sms notify inform invite announce broadcast push call remind message")
_BACK: Final = re.compile(
    r"\W*[A-Za-z-]+(?: (?:off|out|down|up|away|rid of))? (?:it|them|these|those|both|the lot|everything"
    r"|the (?:old|other|previous)(?: ones?)?(?=\W*$)"
    r"|(?:all|every|each)(?: (?:last|single|remaining))?(?: one)?(?: of (?:it|them|these|those))?"
    r"(?=\W*$|\W+(?:now|please|today|tonight|including|that|which|from|before|older)\b|,))(?!\w)",
    re.IGNORECASE,
)
_SOMEBODYS: Final = whole_words(
    r"""
    (?:into|to|on|in|over) (?:the |our |a |their )?[\w-]+['\u2019]s? (?:\w+ )?(?:clusters?|servers?|systems?
    |databases?|machines?|networks?|consoles?|tenants?)|(?:the|our) (?:database|server
    |system) (?:that |which )?the \w+ uses
    """
)
_CHANGES: Final = _set(
    "restart stop kill clear delete drop truncate restore reset update upgrade overwrite empty run wipe"
)
_FAR: Final = 110
"""Characters of what follows a verb in which it names what it acts on."""


def to_many(clause: Clause, tail: str) -> bool:
    """Whether it tells many people something."""
    return clause.verb in _TELLS and _TO_MANY.search(tail) is not None


def protected(clause: Clause, tail: str, before: str = "") -> Iterator[Sign]:
    """What the clause would do to what is to be protected. tail: it, and the rest of the sentence.

    before: the sentence that says what is meant by "them"; empty: the clause says it itself.
    """
    verb = clause.verb
    # "The carts have to be emptied" has what it acts on before the verb.
    near = before or tail[clause.at :][:_FAR]
    if is_code(clause) or _CODE.search(before):
        return
    for one in _CLASSES:
        if verb in one.verbs and one.things.search(near):
            yield one.sign
            return
    if not before and verb in _STRONG and _felt(clause):
        yield Sign.LIVE


def is_code(clause: Clause) -> bool:
    """Whether what it acts on is a piece of code or a text."""
    # The verb is none: "comment out the check" comments nothing.
    named = clause.text if clause.at is None else clause.text[clause.at :].partition(" ")[2]
    return _CODE.search(named) is not None


def is_text(clause: Clause) -> bool:
    """Whether what it acts on is something that a task for a coding agent is about."""
    return is_code(clause) or _ARTEFACT.search(clause.text) is not None


def refers_back(clause: Clause) -> bool:
    """Whether what it acts on is said in the sentence before."""
    return clause.at is not None and _BACK.match(clause.text[clause.at :]) is not None


def _felt(clause: Clause) -> bool:
    """Whether it orders something to be done now to something definite that is no text."""
    if (
        clause.at is None
        or "@" in clause.text[: clause.at]
        or _ARTEFACT.search(clause.text)
        or _BEHAVIOUR.search(clause.text)
    ):
        return False
    return _WHOM.match(clause.text[clause.at :]) is not None


def in_somebodys_system(clause: Clause, sentence: str) -> bool:
    """Whether it changes something in a system that the sentence says is somebody's."""
    return clause.verb in _CHANGES and _SOMEBODYS.search(sentence) is not None and _CODE.search(sentence) is None
