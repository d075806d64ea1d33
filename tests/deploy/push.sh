#!/usr/bin/env bash
# A push to a platform: a fresh clone is built with an empty home and no secret, released and served against PostgreSQL
# and Redis, by the commands of Procfile, render.yaml and the systemd unit, and talked to.
set -euo pipefail
work=$(mktemp -d)
. "$(dirname "$0")/running.sh"

app=$work/app
git clone --quiet "$root" "$app"
python3 -m venv "$app/.venv"
mkdir "$work/home" "$work/state"
cd "$app"
here=(env -i HOME="$work/home" LANG=C.UTF-8 PATH="$app/.venv/bin:$PATH")
of_render() { sed -n "s/^ *$1: \"\{0,1\}\([^\"]*\)\"\{0,1\}$/\1/p" render.yaml; }
of_procfile() { sed -n "s/^$1: //p" Procfile; }
of_unit() { sed -n "s#^$1=##p" docs/deploy/voiceapp.service | sed "s#/opt/voiceapp#$app#; s/8001/$port/"; }

SECONDS=0
"${here[@]}" EXTRAS=redis,celery,s3,llm,aoq,mcp,wyoming sh -c "$(of_render buildCommand)"
echo "Built in $SECONDS s."

start_databases
given=$(python3 -c '
import json
for name, entry in json.load(open("app.json"))["env"].items():
    print(name + "=" + entry["value"] if "value" in entry else "")')
here+=($given SECRET_KEY="$(openssl rand -hex 32)" ALLOWED_HOSTS=127.0.0.1 DYNO=web.1 PORT="$port"
  DATABASE_URL="$DATABASE_URL" REDIS_URL="$REDIS_URL")

# serves NAME RELEASE WEB: what a platform does with these commands ends in a conversation.
serves() {
  "${here[@]}" sh -c "$2"
  start "${here[@]}" sh -c "$3"
  until_ready
  talk "$("${here[@]}" python manage.py createkey --account Acme)"
  stop_last
  echo "$1: released, ready, talked, stopped."
}
serves Procfile "$(of_procfile release)" "exec $(of_procfile web)"
serves render.yaml "$(of_render preDeployCommand)" "$(of_render startCommand)"
here+=(VAR_DIR="$work/state" MODELS_DIR="$app/var/models")
serves voiceapp.service "$(of_unit ExecStartPre)" "exec $(of_unit ExecStart)"
