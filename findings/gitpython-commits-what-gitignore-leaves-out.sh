#!/usr/bin/env bash
# GitPython 3.2.1, pygit2 1.21.0 and dulwich 1.2.21 (PyPI) beside git 2.39.5 (Debian 12): what a commit of "everything"
# has in it, of a repository with `build/` in .gitignore, with `* text=auto` and `*.bin filter=upper` in .gitattributes,
# and with a pre-commit hook that refuses. The filter stands for the one of Git LFS.
#
#                                build/    CR LF becomes LF   filter run   refused by the hook
#   git add . && git commit      left out  yes                yes          yes
#   GitPython, index.add(["."])  in it     no                 no           yes
#     the same, force=False      in it     no                 no           yes
#     index.add(["*"])           in it     no                 no           yes; names with a dot are left out
#   pygit2, index.add_all()      left out  yes                no           no
#   dulwich, porcelain.add()     left out  yes                yes          yes
#
# `repo.index.add` is the example of GitPython's documentation. It writes the bytes of each file into the index by
# itself, and adds ignored files by default; force=False, which should not, has no effect, as its docstring says. So a
# runner that commits an agent's work in this way commits the folder of the build, files of LFS whole, and files that
# `git status` shows as changed right after it. repo.git.add(".") is git itself, and does what git does.
# Source: https://gitpython.readthedocs.io/en/stable/tutorial.html ("The Index Object"), gitattributes(5)
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check gitpython==3.2.1 pygit2==1.21.0 dulwich==1.2.21 \
    2>/dev/null
env -i PATH="$PATH" HOME="$folder" "$folder/venv/bin/python" - "$folder" <<'PYTHON'
import os, pathlib, subprocess, sys, tempfile

import git, pygit2
from dulwich import porcelain

FILES = {
    ".gitignore": b"build/\n",
    ".gitattributes": b"* text=auto\n*.bin filter=upper\n",
    "build/output.o": b"object\n",
    "notes.txt": b"one\r\ntwo\r\n",
    "large.bin": b"large\n",
}
IDENTITY = {"user.name": "agent", "user.email": "agent@example.org", "filter.upper.clean": "tr a-z A-Z"}


def run(*arguments):
    return subprocess.run(["git", *arguments], stdout=-1, stderr=-1, check=True).stdout


def of_git():
    run("add", ".")
    run("commit", "--message", "all")


def of_gitpython(*paths, **options):
    def commit():
        repository = git.Repo(".")
        repository.index.add(paths, **options)
        repository.index.commit("all")

    return commit


def of_pygit2():
    repository = pygit2.Repository(".")
    repository.index.add_all()
    repository.index.write()
    agent = pygit2.Signature("agent", "agent@example.org")
    repository.create_commit("HEAD", agent, agent, "all", repository.index.write_tree(), [])


def of_dulwich():
    porcelain.add(".")
    porcelain.commit(".", message="all")


def make(hook):
    """A repository, in which the work is done."""
    os.chdir(tempfile.mkdtemp(dir=sys.argv[1]))
    run("init", "--quiet")
    for key, value in IDENTITY.items():
        run("config", key, value)
    for file, content in FILES.items():
        pathlib.Path(file).parent.mkdir(exist_ok=True)
        pathlib.Path(file).write_bytes(content)
    if hook:
        pathlib.Path(".git/hooks/pre-commit").write_text("#!/bin/sh\nexit 1\n")
        os.chmod(".git/hooks/pre-commit", 0o755)


def is_refused(commit):
    make(hook=True)
    try:
        commit()
    except Exception:
        return True
    return False


ways = {"git": of_git, "GitPython .": of_gitpython("."), "GitPython . force=False": of_gitpython(".", force=False)}
ways |= {"GitPython *": of_gitpython("*"), "pygit2": of_pygit2, "dulwich": of_dulwich}
seen = {}
for name, commit in ways.items():
    make(hook=False)
    commit()
    files = run("ls-tree", "-r", "--name-only", "HEAD").decode().split()
    lines, large = run("cat-file", "-p", "HEAD:notes.txt"), run("cat-file", "-p", "HEAD:large.bin")
    seen[name] = "build/output.o" in files, b"\r" not in lines, large == b"LARGE\n", is_refused(commit)
    print(f"{name}: build/ in it %s, LF %s, filter run %s, refused %s; {len(files)} files" % seen[name])
bytes_as_they_are = (True, False, False, True)
assert seen == {
    "git": (False, True, True, True),
    **dict.fromkeys(["GitPython .", "GitPython . force=False", "GitPython *"], bytes_as_they_are),
    "pygit2": (False, True, False, False),
    "dulwich": (False, True, True, True),
}, "it has changed"
PYTHON
