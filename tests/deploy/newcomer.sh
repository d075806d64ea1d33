#!/usr/bin/env bash
# Times the README's two commands as a newcomer gives them: in a clean clone, with an empty home and environment.
#   tests/deploy/newcomer.sh [what make test runs, such as ARGS=tests/test_formats.py]
set -euo pipefail
root=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)
place=$(mktemp -d)
port=${PORT:-8000}
mkdir "$place/home"
newcomer() { env -i HOME="$place/home" PATH="$PATH" LANG="${LANG:-C.UTF-8}" PORT="$port" "$@"; }
took() { echo "$1: $(($(date +%s) - begun)) s"; begun=$(date +%s); }

begun=$(date +%s)
git clone --quiet "$root" "$place/voiceapp"
cd "$place/voiceapp"
setsid env -i HOME="$place/home" PATH="$PATH" LANG="${LANG:-C.UTF-8}" PORT="$port" make run > "$place/log" 2>&1 &
server=$!
trap 'kill -- -$server 2>/dev/null || true; wait; rm -rf "$place"' EXIT
until curl --silent --fail --output /dev/null "http://127.0.0.1:$port/readyz"; do
  kill -0 $server 2>/dev/null || { cat "$place/log"; exit 1; }
  sleep 0.2
done
took "make run, until a conversation can start"
curl --silent --fail "http://127.0.0.1:$port/" | grep -q '<title>'
kill -- -$server
wait $server || true
begun=$(date +%s)
newcomer make test "$@"
took "make test"
