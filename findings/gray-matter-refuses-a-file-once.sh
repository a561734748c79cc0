#!/usr/bin/env bash
# gray-matter 4.0.3 (npm) beside python-frontmatter 1.3.0 (PyPI): a file with invalid front matter is refused once, and
# accepted with no data at all the next time that its text is parsed in the same process.
#
#   matter(text)             throws; then data {}, the whole file as content, and no error
#   matter(text, {})         throws each time
#   frontmatter.loads(text)  raises each time
#
# matter() keeps what it has parsed, by the text, and puts it there before the YAML is read. So what is tried again, as
# by a watcher, a retry, or a reader that first validates and then loads, succeeds: a skill or a prompt has no name and
# no description, and its header goes to the model as text. With any options, also {}, nothing is kept. For the same
# reason a valid file has what the last caller made of it: `data` is one object for all, and a key that one adds or
# deletes is there or gone for the next, also for another file with the same text. The header here is a common one in
# files for agents: a colon in a description that is not in quotes.
# Source: https://github.com/jonschlinkert/gray-matter (lib/index.js, matter.cache)
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
npm install --silent --no-audit --no-fund --prefix "$folder" gray-matter@4.0.3 >/dev/null
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check python-frontmatter==1.3.0 2>/dev/null
cat >"$folder/skill.md" <<'MD'
---
name: release
description: Use when: a version is due
---
Tag it.
MD
cat >"$folder/try.mjs" <<'JS'
import matter from 'gray-matter'
import { readFileSync } from 'node:fs'
const text = readFileSync('skill.md', 'utf8')
const parse = (...options) => {
  try {
    const { data, content } = matter(text, ...options)
    return `data ${JSON.stringify(data)}, content of ${content.trim().split('\n').length} lines`
  } catch (error) {
    return error.name
  }
}
for (const round of [1, 2, 3]) console.log(`matter(text), ${round}: ${parse()}`)
for (const round of [1, 2]) console.log(`matter(text, {}), ${round}: ${parse({})}`)
const valid = text.replace('when: a', 'when a')
const { data } = matter(valid)
data.model = 'small'
delete data.description
console.log('a valid file, after its data was changed:', JSON.stringify(matter(valid).data))
JS
cat >"$folder/try.py" <<'PYTHON'
import frontmatter

for attempt in (1, 2):
    try:
        print(frontmatter.load("skill.md").metadata)
    except Exception as error:
        print(f"frontmatter.load(), {attempt}: {type(error).__name__}")
PYTHON
cd "$folder"
run() { env -i PATH="$PATH" HOME="$folder" timeout 60 "$@"; }
{ run node try.mjs && run venv/bin/python try.py; } | tee seen
diff seen - <<'TXT' || { echo "it has changed"; exit 1; }
matter(text), 1: YAMLException
matter(text), 2: data {}, content of 5 lines
matter(text), 3: data {}, content of 5 lines
matter(text, {}), 1: YAMLException
matter(text, {}), 2: YAMLException
a valid file, after its data was changed: {"name":"release","model":"small"}
frontmatter.load(), 1: ScannerError
frontmatter.load(), 2: ScannerError
TXT
