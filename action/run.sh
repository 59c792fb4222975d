#!/usr/bin/env bash
# Runs espalier for the GitHub Action. The inputs come by the environment and are split into
# words; nothing of them is read as shell, and patterns are left to espalier.
set -euo pipefail

words() { IFS=$' \t\n' read -r -d '' -a "$1" <<< "$2" || true; }

words paths "$ESPALIER_PATHS"
words args "${ESPALIER_ARGS:-}"
if [ ${#paths[@]} = 0 ]; then
  printf '::error title=espalier::%s\n' 'the input paths is empty: name files or folders, or set install-only to "true"'
  exit 2
fi
# Bash 3.2, which is that of macOS, takes an empty array for an unset variable.
exec "$ESPALIER_PROGRAM" "$ESPALIER_COMMAND" -o github ${args[@]+"${args[@]}"} -- "${paths[@]}"
