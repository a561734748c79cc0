// The page's scripts: live updates, the live log, times in the viewer's zone, keys.
// Texts of agents enter the page by textContent only.
"use strict";

(() => {
  const DEBOUNCE_MS = 250;
  const TICK_MS = 30_000;
  const QUIET_MS = 5_000; // between two announcements
  const RETRY_MS = [1_000, 2_000, 5_000, 15_000, 30_000];
  const MOST_ENTRIES = 3_000;

  const byId = (id) => document.getElementById(id);
  const live = () => document.querySelector("[data-refresh]");

  // --- times ---------------------------------------------------------------------------------------------------------

  const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", timeZoneName: "short" });
  const clockSeconds = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short" });
  const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
  const dayOfYear = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric" });
  const whole = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });

  // As the daemon writes durations, to the minute: 45m, 1h30m, 3d4h.
  function length(ms) {
    const minutes = Math.floor(ms / 60_000);
    if (minutes < 1) return `${Math.max(0, Math.floor(ms / 1000))}s`;
    if (minutes < 60) return `${minutes}m`;
    const days = Math.floor(minutes / 1_440);
    const parts = [[days, "d"], [Math.floor(minutes / 60) % 24, "h"], [days ? 0 : minutes % 60, "m"]];
    return parts.filter(([count]) => count).flat().join("");
  }

  const dateOf = (instant, now) => (instant.getFullYear() === now.getFullYear() ? day : dayOfYear).format(instant);

  function worded(instant, show) {
    const now = new Date();
    const passed = now - instant;
    const date = instant.toDateString() === now.toDateString() ? "" : `${dateOf(instant, now)} `;
    if (show === "clock") return date + clock.format(instant);
    if (show === "until" && passed < 0) return `${date}${clock.format(instant)} (in ${length(-passed)})`;
    if (show === "until") return date + clock.format(instant);
    if (show === "second") return date + clockSeconds.format(instant);
    if (show === "for") return length(passed);
    return passed < 5_000 ? "just now" : `${length(passed)} ago`;
  }

  // The daemon's sentences contain times in UTC, as text: "14:20 UTC", "2026-11-27 14:20 UTC".
  function localized(text) {
    return text.replace(/(?:(\d{4}-\d\d-\d\d) )?\b(\d\d:\d\d) UTC\b/g, (found, date, time) => {
      const instant = new Date(`${date || new Date().toISOString().slice(0, 10)}T${time}:00Z`);
      return isNaN(instant) ? found : worded(instant, "clock");
    });
  }

  function showTimes() {
    for (const said of document.querySelectorAll(".sentences li:not([data-local]), .notice .why span:not([data-local])")) {
      const text = localized(said.textContent);
      if (text !== said.textContent) said.textContent = text;
      said.dataset.local = "";
    }
    for (const time of document.querySelectorAll("time[data-show]")) {
      const instant = new Date(time.dateTime);
      const text = worded(instant, time.dataset.show);
      if (time.textContent !== text) time.textContent = text;
      if (!time.title) time.title = whole.format(instant);
    }
  }

  // Times that are typed are on the viewer's clock; a page without this script says on whose clock they are.
  for (const field of document.querySelectorAll("input[type=datetime-local][data-at]")) {
    const instant = new Date(field.dataset.at);
    field.value = new Date(instant - instant.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
  }
  document.addEventListener("formdata", (event) => {
    for (const field of event.target.querySelectorAll("input[type=datetime-local]")) {
      if (field.value) event.formData.set(field.name, new Date(field.value).toISOString());
    }
  });

  // --- wide tables ----------------------------------------------------------------------------------------------------

  // A table that is too wide for its place, on a phone or with long names, becomes a list: see .stacked.
  function fitTables() {
    for (const table of document.querySelectorAll(".scroll > table")) {
      const heads = [...table.tHead.rows[0].cells].map((head) => head.textContent);
      for (const cell of table.querySelectorAll("tbody td")) if (heads[cell.cellIndex]) cell.dataset.head = heads[cell.cellIndex];
      const box = table.parentElement;
      box.classList.remove("stacked");
      box.classList.toggle("stacked", box.scrollWidth > box.clientWidth);
    }
  }

  // --- refreshing ----------------------------------------------------------------------------------------------------

  const open = new Map(); // which <details> the viewer opened or closed, by id
  let due = 0;
  let announced = 0;
  let waiting = 0;
  let spoken = live()?.dataset.summary;

  function refreshSoon() {
    if (!due) due = setTimeout(refresh, DEBOUNCE_MS);
  }

  // A refresh would lose what is being typed. It would also lose the selection, and change the versions that the next
  // action is limited to.
  const inUse = (target) =>
    [...target.querySelectorAll("textarea")].some((one) => one.value) || target.querySelector("[name=task]:checked");

  // htmx restores the focus of elements with an id. Others are recognized by their target, label and place.
  const keyOf = (one) =>
    [one.tagName, one.getAttribute("href"), one.ariaLabel, one.form?.getAttribute("action"), one.closest("[id]")?.id].join();
  let focused = "";

  document.addEventListener("htmx:beforeSwap", (event) => {
    focused = keyOf(document.activeElement);
    // Somebody may have begun to type while the answer was on its way.
    if (event.detail.target === live() && inUse(live())) event.detail.shouldSwap = false;
  });

  function restoreFocus() {
    if (document.activeElement !== document.body) return;
    [...document.querySelectorAll("a, button, input, summary, [tabindex]")].find((one) => keyOf(one) === focused)?.focus({ preventScroll: true });
  }

  function refresh() {
    due = 0;
    const target = live();
    if (!target || document.hidden || paused) return;
    if (inUse(target)) return; // the next event or tick tries again
    const also = target.dataset.also;
    const context = { source: target, target, swap: "outerHTML", select: `#${target.id}` };
    target.setAttribute("hx-select-oob", also ? `#standing,${also}` : "#standing");
    htmx.ajax("GET", location.pathname + location.search, context).catch(() => {}); // the daemon is down; see listen
  }

  function afterSwap() {
    for (const [id, wanted] of open) {
      const details = byId(id);
      if (details) details.open = wanted;
    }
    showTimes();
    fitTables();
    showPicking();
    restoreFocus();
    const target = live();
    if (!target) return;
    document.title = target.dataset.title;
    followLog(target.dataset.run, target.dataset.check);
    announce(target.dataset.summary);
  }

  function announce(summary) {
    clearTimeout(waiting);
    if (summary === spoken) return;
    const silence = announced + QUIET_MS - Date.now();
    if (silence > 0) {
      waiting = setTimeout(announce, silence, summary);
      return;
    }
    spoken = summary;
    announced = Date.now();
    byId("announce").textContent = summary;
  }

  // --- events --------------------------------------------------------------------------------------------------------

  let source = null;
  let failures = 0;
  let lostAt = null;
  let again = 0;
  let paused = sessionStorage.getItem("paused") === "yes";

  function say(state, label) {
    const shown = byId("live");
    shown.className = `live ${state}`;
    shown.querySelector(".label").textContent = label;
    shown.title = label;
    shown.hidden = false;
  }

  function listen() {
    clearTimeout(again);
    if (source || paused || document.hidden || !live()) return;
    source = new EventSource("/v1/events");
    source.onopen = () => {
      failures = 0;
      lostAt = null;
      say("on", "Live");
      refreshSoon(); // for events that were missed
    };
    source.onerror = () => {
      if (!lostAt) lostAt = new Date();
      say("lost", `Reconnecting; as of ${clock.format(lostAt)}`);
      if (source.readyState !== EventSource.CLOSED) return; // the browser reconnects by itself
      stopListening();
      again = setTimeout(listen, RETRY_MS[Math.min(failures++, RETRY_MS.length - 1)]);
      if (failures === 1) refreshSoon(); // shows whether the session has ended
    };
    for (const kind of byId("live").dataset.kinds.split(" ")) source.addEventListener(kind, happened);
    source.addEventListener("reset", refreshSoon);
  }

  function happened(message) {
    const task = live()?.dataset.task;
    const about = JSON.parse(message.data).task_id;
    if (!task || !about || about === task) refreshSoon();
  }

  function stopListening() {
    source?.close();
    source = null;
  }

  function setPaused(wanted) {
    paused = wanted;
    sessionStorage.setItem("paused", wanted ? "yes" : "no");
    const button = byId("pause");
    button.setAttribute("aria-pressed", String(wanted));
    button.textContent = wanted ? "Resume updates" : "Pause updates";
    if (wanted) say("", "Paused");
    follow();
  }

  function follow() {
    if (paused || document.hidden) {
      stopListening();
      stopLog();
    } else {
      listen();
      followLog(live()?.dataset.run, live()?.dataset.check);
    }
  }

  // --- the live log --------------------------------------------------------------------------------------------------

  let logSource = null;
  let logRun = null;
  let logEnded = false;
  let logCursor = ""; // where to continue
  let lastLabel = null;
  let unfinished = null; // the entry that the next one continues

  function followLog(run, check) {
    const box = byId("log");
    if (!box || !run) return;
    if (run !== logRun) {
      stopLog();
      logRun = run;
      logEnded = false;
      logCursor = "";
      lastLabel = unfinished = null;
      box.dataset.run = run;
      box.replaceChildren();
      byId("log-raw").href = `/v1/runs/${encodeURIComponent(run)}/log?limit=1048576${check ? "&check=true" : ""}`;
    }
    if (logSource || logEnded || paused || document.hidden) return;
    const from = logCursor && `&cursor=${encodeURIComponent(logCursor)}`;
    logSource = new EventSource(`/v1/runs/${encodeURIComponent(run)}/log?view=structured${check ? "&check=true" : ""}${from}`);
    logSource.onopen = () => { byId("log-state").textContent = ", live"; };
    logSource.addEventListener("entry", (message) => {
      logCursor = message.lastEventId;
      append(box, JSON.parse(message.data));
    });
    logSource.addEventListener("end", () => {
      logEnded = true;
      byId("log-state").textContent = box.childElementCount ? ", ended" : ", ended without a word";
      stopLog();
    });
    logSource.onerror = () => {
      if (logSource?.readyState === EventSource.CLOSED) {
        byId("log-state").textContent = ", not available at the moment";
        stopLog();
      }
    };
  }

  function stopLog() {
    logSource?.close();
    logSource = null;
  }

  function append(box, entry) {
    const atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 40;
    if (unfinished?.kind === entry.kind) unfinished.said.textContent += entry.text;
    else appendLine(box, entry);
    if (!entry.partial) unfinished = null;
    if (atEnd) box.scrollTop = box.scrollHeight;
  }

  function appendLine(box, entry) {
    const line = document.createElement("div");
    const kind = document.createElement("span");
    const said = document.createElement("span");
    line.className = "entry";
    if (/^[a-z_]+$/.test(entry.kind)) line.classList.add(entry.kind);
    kind.className = "kind";
    const label = (entry.tool || entry.kind).replaceAll("_", " ");
    kind.textContent = label === lastLabel ? "" : label;
    lastLabel = label;
    said.className = "said";
    said.textContent = entry.omitted ? `${entry.text}\n(${entry.omitted} characters left out)` : entry.text;
    line.append(kind, said);
    box.append(line);
    unfinished = { kind: entry.kind, said };
    while (box.childElementCount > MOST_ENTRIES) box.firstElementChild.remove();
  }

  // --- keys ----------------------------------------------------------------------------------------------------------

  const isSeen = (one) => one.checkVisibility?.() ?? true; // folded rows cannot have the focus

  function step(by) {
    const links = [...document.querySelectorAll(".rows a.name")].filter(isSeen);
    if (!links.length) return;
    const at = links.indexOf(document.activeElement);
    const next = at < 0 ? (by > 0 ? 0 : links.length - 1) : Math.min(Math.max(at + by, 0), links.length - 1);
    links[next].focus();
  }

  // The next task that needs a person, after the focused one.
  function next() {
    const links = [...document.querySelectorAll("#needs-you .rows a.name")].filter(isSeen);
    if (!links.length) return document.querySelector("#needs-you") ? null : location.assign(byId("next")?.href ?? "/next");
    links[(links.indexOf(document.activeElement) + 1) % links.length].focus();
  }

  // The first action for the focused row, or for the page's task.
  function act(what = "textarea, .actions a") {
    const first = place()?.querySelector(what);
    if (first?.tagName === "TEXTAREA") first.focus();
    else first?.click();
  }

  const place = () => document.activeElement.closest(".row") ?? document.querySelector("#task");

  const KEYS = {
    a: () => act(),
    r: () => act("[id^=do-reject], [id^=do-restart]"),
    x: () => act("[name=task]"),
    n: next,
    w: () => location.assign("/new"),
    "/": () => byId("filter") ? byId("filter").focus() : location.assign("/"),
    j: () => step(1),
    k: () => step(-1),
    p: () => setPaused(!paused),
    g: () => location.assign("/"),
    c: () => location.assign("/channels"),
    s: () => location.assign("/specialists"),
    t: () => location.assign("/routing"),
    d: () => location.assign("/decisions"),
    o: () => byId("to-policy")?.click(),
    "?": () => byId("help").showModal(),
  };

  document.addEventListener("keydown", (event) => {
    const form = event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.closest("textarea")?.form;
    if (form) {
      event.preventDefault();
      form.requestSubmit();
      return;
    }
    const typing = event.target.closest("input:not([type=checkbox]), select, textarea, dialog");
    if (typing || event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(KEYS, event.key)) return;
    event.preventDefault();
    KEYS[event.key]();
  });

  // --- many rows -----------------------------------------------------------------------------------------------------

  function showPicking() {
    const chosen = document.querySelectorAll("[name=task][form=chosen]:checked").length;
    const count = byId("chosen-count");
    if (count) count.textContent = String(chosen);
    for (const button of document.querySelectorAll("[data-pick]")) button.hidden = false;
  }

  // Select all of the section or fold, or none if all are selected.
  function pickAll(button) {
    const boxes = [...button.closest("details, section").querySelectorAll("[name=task]")];
    const wanted = !boxes.every((box) => box.checked);
    for (const box of boxes) box.checked = wanted;
    showPicking();
  }

  function setDensity(comfortable) {
    document.documentElement.classList.toggle("comfortable", comfortable);
    byId("density")?.setAttribute("aria-pressed", String(comfortable));
  }

  function rememberDensity() {
    const comfortable = !document.documentElement.classList.contains("comfortable");
    localStorage.setItem("density", comfortable ? "comfortable" : "compact");
    setDensity(comfortable);
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-pick]");
    if (button) pickAll(button);
  });
  document.addEventListener("change", showPicking);
  document.addEventListener("reset", () => setTimeout(showPicking));
  byId("density")?.addEventListener("click", rememberDensity);
  if (byId("density")) byId("density").hidden = false;
  setDensity(localStorage.getItem("density") === "comfortable");
  showPicking();

  // --- start ---------------------------------------------------------------------------------------------------------

  document.addEventListener("toggle", (event) => {
    if (event.target.id && event.target.tagName === "DETAILS") open.set(event.target.id, event.target.open);
    fitTables();
  }, true);
  document.body.addEventListener("htmx:afterSettle", afterSwap);
  document.body.addEventListener("htmx:responseError", (event) => {
    if ([401, 404].includes(event.detail.xhr.status)) location.reload();
  });
  document.addEventListener("visibilitychange", follow);
  addEventListener("pagehide", () => { stopListening(); stopLog(); });
  addEventListener("pageshow", (event) => { if (event.persisted) follow(); });
  byId("pause").addEventListener("click", () => setPaused(!paused));
  byId("help-open").addEventListener("click", () => byId("help").showModal());
  byId("help-open").hidden = false;
  // Scroll a picture that is wider than the window to its end, and keep the names of its lanes in sight.
  for (const box of new Set([...document.querySelectorAll("svg.night")].map((picture) => picture.parentElement))) {
    box.addEventListener("scroll", () => {
      for (const names of box.querySelectorAll(".names")) {
        const picture = names.ownerSVGElement;
        names.setAttribute("transform", `translate(${box.scrollLeft * picture.viewBox.baseVal.width / picture.clientWidth} 0)`);
      }
    });
    box.scrollLeft = box.scrollWidth;
  }
  showTimes();
  fitTables();
  addEventListener("resize", fitTables);
  setInterval(showTimes, TICK_MS / 3);
  if (live()) {
    byId("pause").hidden = false;
    setInterval(refreshSoon, TICK_MS); // waits end without an event
    setPaused(paused);
  }
})();
