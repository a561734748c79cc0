"""The files that ``init`` writes."""

CONFIG = """\
# Claudomator's configuration. Every key is optional; what is commented out shows the default.
# Relative paths are relative to this file. `claudomator doctor` checks it.

# Folders that are watched for task files.
inbox:
  paths: [tasks]
  # after_accept: keep             # or move: into a subfolder, once accepted

# Where the daemon keeps its database, its runs and the operator's token.
state_dir: .claudomator

# Tasks may only work below these folders; without any, anywhere but here and in the state folder.
# workdir_roots: [~/src]

# http: {listen: 127.0.0.1:8484}

# concurrency: {total: 4, per_workdir: 1}

# Without this, the agents found on PATH are used.
# agents:
#   claude:
#     max_concurrent: 2
#     models: {fast: haiku, balanced: sonnet, powerful: opus}
#     default_tier: balanced
#   lint: {kind: command, command: [make, lint]}    # runs when a task names it

# balancing: {type_hint: prefer, prefer_wait: 2m, when_all_limited: wait, near_limit: tie_break}

# limits: {output_cap: 256MiB, grace: 10s, min_free: 512MiB}
"""

SERVICE_CONFIG = """\
# Claudomator's configuration. Every key is optional; what is commented out shows the default.
# `claudomator doctor` checks it; SIGHUP (systemctl reload) takes changes into use, but for state_dir, database
# and http.

# Folders that are watched for task files.
inbox:
  paths: [@INBOX@]

# Where the daemon keeps its database, its runs and the operator's token.
state_dir: @STATE@

# Tasks may only work below these folders; without any, anywhere but in the inbox and in the state folder.
# workdir_roots: [~/src]

# Without this, the agents found on PATH are used.
# agents:
#   claude: {max_concurrent: 2, pass_env: [ANTHROPIC_API_KEY]}

# What becomes of live runs when the daemon is stopped: they go on, or they are awaited.
# on_stop: leave                   # or drain
"""

FIRST_TASK = """\
# A first task. It runs once; change it, and it runs again. `claudomator validate --schema` lists all keys.
name: hello
instructions: |
  Say hello in one sentence, then name the tools that you have here. Change nothing.
agent: {tier: fast}
timeout: 5m
# working_dir: ~/src/my-project     # without one: an empty folder of its own
# check: [make test]                # commands that all must succeed
tags: [sample]
"""
