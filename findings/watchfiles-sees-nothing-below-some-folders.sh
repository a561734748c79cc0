#!/usr/bin/env bash
# watchfiles 1.3.0 (PyPI): watch(FOLDER) reports no change at all if a folder above FOLDER has one of a dozen names.
#
# Its filter leaves out what lies in `.git`, `.venv`, `.tox`, `node_modules`, `.idea` and the like. It looks for these
# names in the absolute path of a file, and so in the part that the caller has given, too. A folder of drop files in
# `.git`, where git does not see it, or below `.venv` or `node_modules`, where a package has its data, is watched
# without an error, and nothing ever happens there. Tests that have their temporary folders from tox (`pytest
# --basetemp={env_tmp_dir}`, which is below `.tox`) see no change either, so one that expects none passes whatever the
# code does. `venv`, `.cache` and `site-packages` are not in the list. In any folder, names that end in `~`, `.swp` or
# `.pyc` are left out as well; names in `.tmp` are not. watchdog 6.0.0 (PyPI) leaves out nothing. watch_filter=None is
# the remedy.
# Source: https://watchfiles.helpmanual.io/api/filters/ (DefaultFilter), where ignore_dirs is "full names of directories
# to ignore"; watchfiles/filters.py.
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet --disable-pip-version-check watchfiles==1.3.0 watchdog==6.0.0 2>/dev/null
cd "$folder"
cat >try.py <<'PYTHON'
import pathlib, queue, threading

import watchdog.events, watchdog.observers, watchfiles


def by_watchfiles(folder, watch_filter):
    """The names that are reported, up to the one that ends the test; it is written until it is seen or time is up."""
    seen, stop = set(), threading.Event()
    changes = watchfiles.watch(folder, watch_filter=watch_filter, stop_event=stop, debounce=50, step=10,
                               rust_timeout=200, yield_on_timeout=True)
    for number, batch in enumerate(changes):
        seen |= {pathlib.Path(path).name for _, path in batch}
        if "last.yaml" in seen or number == 40:
            stop.set()
        elif not batch:  # it watches by now
            for name in "task.yaml", "task.tmp", "task~", "last.yaml":
                (folder / name).write_text(str(number))
    return sorted(seen - {"last.yaml"})


def by_watchdog(folder):
    names, seen = queue.Queue(), set()
    handler = watchdog.events.FileSystemEventHandler()
    handler.on_any_event = lambda event: names.put(pathlib.Path(event.src_path).name)
    observer = watchdog.observers.Observer()
    observer.schedule(handler, str(folder))
    observer.start()
    for name in "task.yaml", "task.tmp", "task~", "last.yaml":
        (folder / name).write_text("")
    while (name := names.get(timeout=30)) != "last.yaml":
        seen.add(name)
    observer.stop()
    observer.join()
    return sorted(seen & {"task.yaml", "task.tmp", "task~"})


some, every = ["task.tmp", "task.yaml"], ["task.tmp", "task.yaml", "task~"]
names = "project", "venv", ".cache", "site-packages"
for above in *names, ".git", ".venv", ".tox", "node_modules", ".idea":
    folder = pathlib.Path.cwd() / above / "runner" / "inbox"
    folder.mkdir(parents=True)
    row = by_watchfiles(folder, watchfiles.DefaultFilter()), by_watchfiles(folder, None), by_watchdog(folder)
    print(f"{above + '/runner/inbox:':28} {row[0]!s:26} without filter {row[1]}; watchdog {row[2]}", flush=True)
    assert row == (some if above in names else [], every, every), "it has changed"
PYTHON
env -i PATH="$PATH" timeout 300 env/bin/python try.py
# Seen with Python 3.11, twice, 2026-11:
# project/runner/inbox:        ['task.tmp', 'task.yaml']  without filter ['task.tmp', 'task.yaml', 'task~']; ...
# .git/runner/inbox:           []                         without filter ['task.tmp', 'task.yaml', 'task~']; ...
