"""The modules that are changed, the tests that hold them, and the changes known to make no difference."""

_SCHEDULER = "tests/unit/scheduler"
_DISPATCH = "tests/unit/dispatch"
_PROTOCOLS = "tests/unit/protocols"
_ROUTING = "tests/unit/routing"
_SERVICE = "tests/contract/test_service"
MODULES = {
    "scheduler/plan.py": [_SCHEDULER],
    "scheduler/admission.py": [_SCHEDULER],
    "scheduler/load.py": [_SCHEDULER],
    "scheduler/snapshot.py": [_SCHEDULER],
    "scheduler/tiers.py": [_SCHEDULER],
    "scheduler/classification.py": [f"{_SCHEDULER}/test_tier.py", f"{_SCHEDULER}/test_tiers.py"],
    "scheduler/lanes.py": [
        *(f"{_SCHEDULER}/test_{name}.py" for name in ("lanes", "demand", "slots")),
        "tests/unit/domain/test_demands.py",
    ],
    "scheduler/after_run.py": [f"{_SCHEDULER}/test_ending.py"],
    "domain/limits.py": ["tests/unit/domain/test_limits.py"],
    "domain/outcome.py": ["tests/unit/domain/test_outcome.py"],
    "domain/proof.py": ["tests/unit/domain/test_proof.py"],
    "domain/budget.py": ["tests/unit/domain/test_budget.py"],
    "domain/routing.py": ["tests/unit/domain/test_routing.py", "tests/unit/domain/test_assessment.py"],
    "domain/principal.py": ["tests/unit/domain/test_principal.py"],
    "domain/lifecycle.py": ["tests/unit/domain/test_lifecycle.py", "tests/unit/domain/test_schedule.py"],
    "domain/handoff.py": ["tests/unit/domain/test_handoff.py", "tests/unit/domain/test_handing_on.py"],
    "domain/health.py": ["tests/unit/domain/test_breaker.py"],
    "dispatch/classify.py": [f"{_DISPATCH}/test_classifying.py", f"{_DISPATCH}/test_classifier_limits.py"],
    "dispatch/policing.py": [f"{_DISPATCH}/test_policing.py", f"{_DISPATCH}/test_weighing.py"],
    "dispatch/stopping.py": [f"{_DISPATCH}/test_policing.py", f"{_DISPATCH}/test_weighing.py"],
    "dispatch/cheap_model.py": [f"{_DISPATCH}/test_choosing.py", f"{_DISPATCH}/test_weighing.py"],
    "dispatch/deciding.py": [
        f"{_DISPATCH}/test_deciding.py",
        f"{_DISPATCH}/test_routing_faults.py",
        f"{_DISPATCH}/test_routing.py",
        f"{_DISPATCH}/test_text_vectors.py",
        f"{_DISPATCH}/test_long_texts.py",
    ],
    "dispatch/routing.py": [
        f"{_DISPATCH}/test_routing.py",
        f"{_DISPATCH}/test_routing_faults.py",
        f"{_DISPATCH}/test_reloaded_rules.py",
        f"{_DISPATCH}/test_long_texts.py",
        f"{_DISPATCH}/test_choosing.py",
        f"{_DISPATCH}/test_weighing.py",
        f"{_DISPATCH}/test_policing.py",
    ],
    "dispatch/spending.py": [f"{_DISPATCH}/test_spending.py", f"{_SERVICE}_budgets.py"],
    "dispatch/observe.py": [_DISPATCH, f"{_SERVICE}_budgets.py"],
    "dispatch/lanes.py": [_DISPATCH],
    "dispatch/heads.py": [_DISPATCH],
    "dispatch/reconciler.py": [_DISPATCH, f"{_SERVICE}_policy_time.py"],
    "dispatch/agent_states.py": [f"{_DISPATCH}/test_probing.py"],
    "protocols/hub/__init__.py": [
        f"{_PROTOCOLS}/test_hub.py",
        f"{_PROTOCOLS}/test_hub_ends.py",
        f"{_PROTOCOLS}/test_hub_results.py",
        f"{_PROTOCOLS}/test_hub_absence.py",
        f"{_PROTOCOLS}/test_hub_meanwhile.py",
    ],
    "protocols/hub/waking.py": [f"{_PROTOCOLS}/test_waking.py"],
    "protocols/hub/mailbox.py": [f"{_PROTOCOLS}/test_mailbox.py"],
    "dispatch/start.py": [
        f"{_DISPATCH}/test_starting.py",
        f"{_DISPATCH}/test_item_faults.py",
        f"{_DISPATCH}/test_going_on.py",
        f"{_DISPATCH}/test_handoffs.py",
    ],
    "dispatch/run_context.py": [
        f"{_DISPATCH}/test_starting.py",
        f"{_DISPATCH}/test_going_on.py",
        f"{_DISPATCH}/test_handoffs.py",
    ],
    "dispatch/collect.py": [
        f"{_DISPATCH}/test_ends.py",
        f"{_DISPATCH}/test_checks.py",
        f"{_DISPATCH}/test_limits.py",
        f"{_DISPATCH}/test_live_runs.py",
    ],
    "dispatch/apply_report.py": [
        f"{_DISPATCH}/test_judging.py",
        f"{_DISPATCH}/test_reports.py",
        f"{_DISPATCH}/test_checks.py",
        f"{_DISPATCH}/test_ends.py",
    ],
    "routing/questions.py": [f"{_ROUTING}/test_choice.py"],
    "routing/ranking.py": [f"{_ROUTING}/test_ranking.py", f"{_ROUTING}/test_texts_of_cards.py"],
    "routing/triage.py": [f"{_ROUTING}/test_triage.py"],
    "routing/mentions.py": [f"{_ROUTING}/test_mentions.py", f"{_ROUTING}/test_triage.py"],
    "routing/handing_on.py": [f"{_ROUTING}/test_handing_on.py"],
    "routing/role.py": [f"{_ROUTING}/test_role.py", f"{_ROUTING}/test_precedence.py"],
    "routing/profile.py": [
        f"{_ROUTING}/test_steering.py",
        f"{_ROUTING}/test_courtesy.py",
        f"{_ROUTING}/test_texts_of_cards.py",
    ],
    "risk/__init__.py": ["tests/unit/risk", "tests/unit/domain/test_transcript.py"],
    "risk/harm.py": ["tests/unit/risk"],
    "risk/lexicon.py": ["tests/unit/risk"],
    "risk/orders.py": ["tests/unit/risk"],
    "policy/facts.py": ["tests/unit/policy"],
    "policy/rule.py": ["tests/unit/policy", "tests/unit/domain/test_settings.py"],
    "policy/verdict.py": ["tests/unit/policy/test_verdict.py"],
    "policy/condition.py": ["tests/unit/policy"],
    "policy/cost.py": ["tests/unit/policy/test_cost.py"],
    "policy/expression.py": ["tests/unit/policy"],
    "hosts/local/fate.py": ["tests/unit/hosts/test_run_files.py", "tests/unit/hosts/test_durable.py"],
    "hosts/shim/record.py": ["tests/unit/hosts/test_run_files.py", "tests/unit/hosts/test_durable.py"],
    "hosts/shim/stop.py": ["tests/unit/hosts/test_stop.py"],
    "hosts/shim/watch.py": ["tests/unit/hosts/test_watch.py", "tests/unit/hosts/test_stall.py"],
    "hosts/reporting.py": ["tests/unit/hosts/test_reporting.py"],
    "store/visibility.py": ["tests/unit/store/test_visibility.py"],
    "store/hold_rows.py": ["tests/unit/store/test_hold_rows.py"],
    "store/tick_rows.py": ["tests/unit/store/test_tick_rows.py", "tests/unit/store/test_queue.py"],
    "store/queue.py": ["tests/unit/store/test_queue.py"],
    "resources/concealment.py": ["tests/unit/resources/test_concealment.py"],
    "api/guard/roles.py": ["tests/unit/api/test_roles.py"],
    "resources/access/service.py": ["tests/unit/resources/access/test_keyring.py"],
    "resources/runs/service.py": [f"{_SERVICE}_run_requests.py"],
    "tasks/handing_on.py": ["tests/unit/tasks/test_handing_on.py"],
    "tasks/inputs.py": ["tests/unit/tasks/test_inputs.py"],
}
"""The modules that decide what runs where, when and what follows from its end, and the unit tests that hold each."""

EQUIVALENT = {
    "domain/limits.py: the condition is True: return outcome.model_copy(update=changes) if changes else outcome": (
        "a copy without changes is equal"
    ),
    "domain/limits.py: Gt -> GtE: "
    "if outcome.near_limit_until is not None and outcome.near_limit_until > latest_ms:": "it is cut to what it is",
    "domain/limits.py: the condition is True: "
    "longer = min(max(2 * length, first.until_ms - now_ms if first.until_ms else 0), longest_ms)": (
        "an estimate always has an end"
    ),
    "domain/budget.py: the condition is False: if self.usd is None and self.tokens is None and self.runs is None:": (
        "it only saves a look at three limits"
    ),
    "scheduler/admission.py: the condition is True: "
    "return named_by(head.agent_type, agents) if head.agent_type else ()": "no agent is of no name and no kind",
    "scheduler/snapshot.py: the condition is False: if self.tried:": "whatever is in force ends after what is over",
    "routing/profile.py: the condition is False: if asides.courtesy.search(text) is None:": (
        "it only saves searches that find nothing"
    ),
    "routing/profile.py: the condition is False: if not _may_steer(text):": (
        "it only saves a search that finds nothing"
    ),
    "policy/verdict.py: the condition is True: if rule.tier is not None:": "what was left a tier before is left one",
    "policy/verdict.py: the condition is True: verdict, context = "
    "Verdict(risk=facts.risk), context_of(facts.values, allowance) if self._conditions else None": (
        "no condition looks at it"
    ),
    "policy/verdict.py: the condition is True: if rule.risk is not None and context is not None:": (
        "of the same facts follows the same context"
    ),
    "policy/verdict.py: And -> Or: if rule.risk is not None and context is not None:": (
        "of the same facts follows the same context"
    ),
    "dispatch/deciding.py: the condition is True: "
    "handed = accepted_handoffs(connection, task.id, task.generation)[-1:] if task.seq else ()": (
        "without a run nothing is handed on"
    ),
    "dispatch/deciding.py: Or -> And: if not asked or self._directory is None or self._fallback is None:": (
        "of no tasks none is compared"
    ),
    "dispatch/deciding.py: the condition is True: known = {} if visible_to is None else visible_to": (
        "what is known is only read again"
    ),
    "dispatch/deciding.py: strict=True -> False: "
    "for item, compared, words in zip(asked, similarities, by_words, strict=True):": (
        "each task is compared in either way"
    ),
    "dispatch/deciding.py: strict=True -> False: for subject, record in zip(compared, records, strict=True)": (
        "each that is compared has a record"
    ),
    "dispatch/deciding.py: the condition is True: if whose not in known:": "what is known is only read again",
    "dispatch/deciding.py: the condition is False: "
    "predecessor = None if spec.continues is None else dependency_rows.dependency(connection, task, spec.continues)": (
        "nothing is bound by the name None"
    ),
    "dispatch/routing.py: the condition is False: if not subjects:": "of no tasks none is routed",
    "dispatch/routing.py: the condition is True: if unspecialised:": "of no tasks none is passed",
    "dispatch/routing.py: the condition is False: if digest == self._connected_digest:": "they are the same agents",
    "dispatch/routing.py: lazily=True -> False: "
    "self._database.submit(partial(self._write_skipped, tasks), planned=planned, lazily=True)": (
        "it only costs a commit of its own"
    ),
    "dispatch/routing.py: the condition is False: "
    "return None if name is None else specialist_rows.cards(connection, [name]).get(name)": "nobody has no card",
    "routing/mentions.py: LtE -> Lt: if ends and start <= ends[-1]:": "parts side by side are found one by one, too",
    "routing/mentions.py: the condition is False: if not self._root.following:": "of no phrases none is found anyway",
    'policy/expression.py: left out: sys.modules.setdefault("cel.cli", ModuleType("cel.cli"))': (
        "the library only takes longer to import"
    ),
    "scheduler/plan.py: the condition is True: if self._taken is None:": "it saves a look",
    "scheduler/load.py: the condition is True: if head.constraints.caps:": "without caps nothing is added",
    "scheduler/admission.py: the condition is False: if agent.fallback_model is None and not agent.holds:": (
        "neither changes with the model; it saves a look"
    ),
    "scheduler/admission.py: the condition is False: if not any(is_exhausted(agent, rules) for agent in agents):": (
        "of no exhausted agent no hint is exhausted; it saves a look"
    ),
    "scheduler/admission.py: LtE -> Lt: return kinds <= set(BY_NAME_KINDS)": "a hint means one kind of several",
    "scheduler/admission.py: any -> all: if not any(agent.auto_select for agent in meant):": (
        "what a hint means is open to balancing as a whole, or not at all"
    ),
    "scheduler/admission.py: no filter: because = "
    "tuple(item for agent in hinted if (item := _rejection(agent)) is not None)": (
        "what cannot take the task now has a reason"
    ),
    "dispatch/apply_report.py: the condition is True: "
    'reason = {} if outcome.reason is None else {"reason": outcome.reason.value}': "only the log says it",
    "dispatch/apply_report.py: the condition is False: if known is not None and not known.spec.check:": (
        "what is known already is only read again"
    ),
    "dispatch/apply_report.py: the condition is True: spec = None if known is None else known.spec": (
        "what is known already is only read again"
    ),
    "dispatch/apply_report.py: the condition is True: "
    "if (run.asked, run.over_budget) != (subject.run.asked, subject.run.over_budget):": "the same is judged alike",
    "hosts/reporting.py: the condition is True: if read.undisturbed is not read.outcome:": (
        "what is the same is only cleaned once more"
    ),
    "store/hold_rows.py: the condition is True: "
    "same = _on(hold.bucket) & (HOLD.c.reason == (hold.reason.value if hold.reason is not None else None))": (
        "what a run has met has a reason"
    ),
    "dispatch/collect.py: the condition is False: if task is not None and spec is not None:": (
        "what is known already is only read again"
    ),
    "dispatch/collect.py: the condition is True: "
    "self._probes = _probes(connection, silent, now_ms) if silent else set()": "of no runs none tries a limit",
    "dispatch/collect.py: lazily=True -> False: "
    "self._begun.append((subject, self._database.submit(reaching, planned=True, lazily=True)))": (
        "it only costs a commit of its own"
    ),
    "dispatch/run_context.py: the condition is True: "
    "spending=spending_rows.of_task(connection, task.id) if context.spec.budget.units else Spending(),": (
        "without a budget nobody asks what is left of it"
    ),
    "store/visibility.py: the condition is False: "
    "return true() if by.organisation is None else exists().where(TASK.c.id == RUN.c.task_id, tasks_seen(by))": (
        "every run has a task"
    ),
    "store/visibility.py: the condition is False: "
    "grantees = [by.id] if by.organisation is None else [by.id, organisation_grantee(by.organisation)]": (
        "no organisation is called None"
    ),
    "store/hold_rows.py: strict=True -> False: columns = dict(zip(_NAMES, row, strict=True))": (
        "a row has the columns that were asked for"
    ),
    "scheduler/plan.py: the condition is True: if self._usable_by is None:": "it is the same until the next start",
    "scheduler/lanes.py: any -> all: "
    "return not any(agent.auto_select for agent in meant) if meant else agent_type in BY_NAME_KINDS": (
        "of the agents that are meant all are open to balancing, or none is"
    ),
    "scheduler/lanes.py: the condition is True: if wanted.agent_type is not None:": (
        "no agent is of no name and no kind"
    ),
    "store/queue.py: recursive=True -> False: "
    'place = select(TASK.c.id, *columns).where(TASK.c.id == start).cte("place", recursive=True)': (
        "SQLite needs no word for it; PostgreSQL does"
    ),
    "store/queue.py: the condition is True: if taken.keepers:": "of no keepers no lane is opened; it saves a look",
    "store/queue.py: strict=True -> False: places |= "
    '{f"after_{column.name}": value for column, value in zip(ORDER, after, strict=True)}': (
        "a position has a value for each column of the order"
    ),
    "store/tick_rows.py: strict=True -> False: "
    "return [dict(zip(_KEPT_AS, row, strict=True)) for row in _KEPT.rows(connection, now=now_ms)]": (
        "a row has the columns that were asked for"
    ),
    "store/queue.py: expanding=True -> False: return bindparam(name, expanding=True)": (
        "SQLAlchemy sets it by itself in IN, although it asks for it"
    ),
    "resources/concealment.py: the condition is False: if by.sees_all:": (
        "nobody is hidden from whoever sees all work; it saves a look"
    ),
    "resources/concealment.py: the condition is False: if not hidden:": (
        "without anybody who is hidden nothing is changed; it saves a look"
    ),
    "resources/runs/service.py: the condition is True: if spec.budget.units:": "without a budget any amount is left",
    "api/guard/roles.py: the condition is True: "
    "role = needed.role.value if needed.role is not None else Role.READ.value": (
        "what is open to all is refused to nobody"
    ),
    "dispatch/policing.py: the condition is False: "
    "if not self._by_specialist or (judged.facts.specialist, judged.facts.skill) == (specialist, skill):": (
        "of the same facts follows the same verdict"
    ),
    "dispatch/policing.py: Or -> And: "
    "if not self._by_specialist or (judged.facts.specialist, judged.facts.skill) == (specialist, skill):": (
        "of the same facts follows the same verdict"
    ),
    "dispatch/policing.py: the condition is True: "
    "facts = self._local(connection, facts) if self.has_rules else facts": ("without rules no condition looks at it"),
    "dispatch/policing.py: the condition is True: "
    "spent = self._budgets.spent(connection, now_ms).total if self._uses_spending else Spending()": (
        "no condition looks at it"
    ),
    "dispatch/observe.py: the condition is False: planned = [] if planner.exhausted else list(walk.starts())": (
        "where nothing can start no lane is followed; it saves a look"
    ),
    "dispatch/observe.py: the condition is True: "
    "spent = self._budgets.spent(connection, now_ms) if self.day_end(now_ms) is not None else None": (
        "without a budget for the day nothing is kept from starting; it saves a look"
    ),
    "dispatch/observe.py: the condition is False: day=None if spent is None else self._budgets.day_left(spent),": (
        "without a budget for the day nothing is told of it"
    ),
    "dispatch/observe.py: the condition is True: "
    'tries(connection, live, in_force, now_ms) if rules.when_all_limited == "try" else {},': (
        "where limits are waited for nobody asks how many may try them"
    ),
    "dispatch/lanes.py: the condition is True: if isinstance(considered, Blocked):": (
        "without a free slot none starts, and one about which nothing can be decided is in its pause"
    ),
    "dispatch/reconciler.py: the condition is False: if self._none_stale:": (
        "this version leaves none behind; it saves a look"
    ),
    "dispatch/reconciler.py: the condition is True: if self._database.trouble is not None:": (
        "it only costs a write to find that a store works which does"
    ),
    "dispatch/reconciler.py: the condition is False: if not task_ids:": (
        "without faults none is forgotten; it saves a look"
    ),
    "dispatch/reconciler.py: left out: self._collector.expect(begun.contents)": (
        "what is known already is only read again"
    ),
    "dispatch/reconciler.py: the condition is True: running = tick_rows.running(connection) if live else ()": (
        "of no runs no task is asked for; it saves a look"
    ),
    "dispatch/reconciler.py: no filter: "
    "items = [fault.item for fault in self._faults.all() if fault.item.activity in _FOR_TASKS]": (
        "a run that lives is of a task that has not ended"
    ),
    "dispatch/reconciler.py: whole=False -> True: "
    "self._faults.attempt(_collecting(subject.run, subject.task), begun.result, whole=False)": (
        "a run that was seen to have begun was looked at just before without a fault"
    ),
    "dispatch/spending.py: the condition is False: if not spec.budget.units:": (
        "a budget that limits nothing stops no run; it saves a look"
    ),
    "dispatch/spending.py: the condition is False: if not self._has_budget_of_day(agent):": (
        "a budget that limits nothing stops no run; it saves a look"
    ),
    "dispatch/spending.py: the condition is False: "
    "return today, today if by.sees_all else self.spent(connection, at_ms, by)": (
        "whoever sees all work sees all that was spent; it saves a look"
    ),
    "dispatch/start.py: the condition is False: if not starts:": "of no starts nothing is begun",
    "dispatch/run_context.py: the condition is True: "
    "before = run_rows.of_generation(connection, task.id, task.generation) if task.seq > 0 else ()": (
        "before its first run it has none"
    ),
    "dispatch/run_context.py: the condition is True: "
    "hops=tuple(accepted_handoffs(connection, task.id, task.generation)) if task.seq > 0 else (),": (
        "without a run nothing is handed on"
    ),
    "dispatch/run_context.py: Gt -> GtE: "
    "before = run_rows.of_generation(connection, task.id, task.generation) if task.seq > 0 else ()": (
        "before its first run it has none"
    ),
    "dispatch/run_context.py: Gt -> GtE: "
    "hops=tuple(accepted_handoffs(connection, task.id, task.generation)) if task.seq > 0 else (),": (
        "without a run nothing is handed on"
    ),
    "dispatch/agent_states.py: the condition is True: "
    "holds = hold_rows.expired(connection, now_ms) if expired is None else expired": "callers have read the same",
    "dispatch/agent_states.py: the condition is True: "
    "since_ms = hold.until_ms if hold.until_ms is not None else now_ms": "what is over has had an end",
    "hosts/local/fate.py: Gt -> GtE: if is_there or time.monotonic() > began + patience:": (
        "at that very moment either is right"
    ),
    "protocols/hub/__init__.py: Gt -> GtE: if left_s > 0:": "at that very moment either is right",
    "protocols/hub/__init__.py: Gt -> GtE: if assignment.not_before_s > self._now_s:": (
        "at that very moment either is right"
    ),
    "protocols/hub/__init__.py: Gt -> GtE: if wait_s > 0:": "at that very moment either is right",
    "protocols/hub/__init__.py: GtE -> Gt: if self._now_s >= assignment.wake_by_s:": (
        "at that very moment either is right"
    ),
    "protocols/hub/__init__.py: Lt -> LtE: if self._now_s < self._due_s:": "at that very moment either is right",
    "protocols/hub/__init__.py: Lt -> LtE: and self._now_s < assignment.wake_by_s": (
        "at that very moment either is right"
    ),
    "protocols/hub/__init__.py: the condition is True: elif not links:": (
        "of an agent that is connected it finds the same once more; it saves a reading"
    ),
}
"""Mutants that change no decision, as ``module: change``, and why."""
