#!/usr/bin/env bash
# GNU make 4.3 (Debian 12): a runner that was itself started by make hands its command line to each `make` of the
# projects below it, in any folder, also through other programs.
#
#   the runner was started by    in another project, below it
#   ./runner                     `make test`, which fails, exits with 2; `make deploy` goes to staging
#   make serve TARGET=prod       `make deploy` goes to prod, though its Makefile says TARGET := staging
#   make -i serve                `make test`, which fails, exits with 0
#   make -B serve                `make build`, which is up to date, builds again
#   make serve                   "$(make version)" has three lines: on stdout, make says which folder it enters and
#                                leaves
#
# MAKEFLAGS and MAKELEVEL are meant for the recursive makes of one project, which the manual describes, and inherited by
# all. A variable of the command line wins over an assignment in a Makefile, and every second project has names such as
# V, TARGET, ENV or TEST. So a check of an agent's work may pass, or concern something else, because of how somebody
# started the runner last week. Start programs of other projects without MAKEFLAGS, MAKELEVEL and MFLAGS.
# Source: https://www.gnu.org/software/make/manual/html_node/Options_002fRecursion.html
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
mkdir "$folder/runner" "$folder/project"
printf 'serve:\n\t@./runner\n' >"$folder/runner/Makefile"
cat >"$folder/project/Makefile" <<'MAKE'
TARGET := staging
deploy: ; @echo "deployed to $(TARGET)"
test: ; @false
version: ; @echo 1.2
build: source ; @touch build; echo built
MAKE
touch "$folder/project/source"
touch -d '1 hour' "$folder/project/build"
cat >"$folder/runner/runner" <<'PYTHON'
#!/usr/bin/env python3
import os, subprocess


def seen(env):
    def make(target):
        return subprocess.run(["make", target], cwd="../project", env=env, stdout=-1, stderr=-3, text=True)

    deployed = next(line for line in make("deploy").stdout.splitlines() if line.startswith("deployed"))
    built = "built" if "built" in make("build").stdout.split() else "not built"
    lines = len(make("version").stdout.splitlines())
    return f"test exits with {make('test').returncode}; {deployed}; {built}; version: {lines} line(s)"


own = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
print(seen(os.environ))
assert seen(own) == "test exits with 2; deployed to staging; not built; version: 1 line(s)", "it has changed"
PYTHON
chmod +x "$folder/runner/runner"
cd "$folder/runner"
for start in ./runner "make serve" "make serve TARGET=prod" "make -i serve" "make -B serve"; do
    touch -d '1 hour' ../project/build
    # shellcheck disable=SC2086 # a command and its arguments
    echo "$start: $(env -i PATH="$PATH" HOME="$folder" LC_ALL=C $start)"
done | tee "$folder/seen"
diff "$folder/seen" - <<'TXT' || { echo "it has changed"; exit 1; }
./runner: test exits with 2; deployed to staging; not built; version: 1 line(s)
make serve: test exits with 2; deployed to staging; not built; version: 3 line(s)
make serve TARGET=prod: test exits with 2; deployed to prod; not built; version: 3 line(s)
make -i serve: test exits with 0; deployed to staging; not built; version: 3 line(s)
make -B serve: test exits with 2; deployed to staging; built; version: 3 line(s)
TXT
