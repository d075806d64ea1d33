# Functions for the scripts of this folder, which set $work: servers in the background, PostgreSQL and Redis of Debian.
root=$(git -C "$(dirname "${BASH_SOURCE[0]}")" rev-parse --show-toplevel)
started=()
port=$(python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')

# Runs a command in the background, in a group of its own; its log is in $work/log.
start() {
  setsid "$@" >> "$work/log" 2>&1 &
  started+=($!)
}

# Ends what was started last; a server has to end with status 0.
stop_last() {
  local process=${started[-1]}
  unset 'started[-1]'
  kill -TERM -- "-$process" 2> /dev/null || true
  wait "$process" || { tail -50 "$work/log"; return 1; }
}

end() {
  while [ ${#started[@]} -gt 0 ]; do stop_last > /dev/null || true; done
  rm -rf "$work"
}
trap end EXIT

until_ready() {
  local deadline=$((SECONDS + ${1:-120}))
  until curl --silent --fail --output /dev/null "http://127.0.0.1:$port/readyz"; do
    if ! kill -0 "${started[-1]}" 2> /dev/null || [ $SECONDS -gt $deadline ]; then
      tail -50 "$work/log"
      return 1
    fi
    sleep 0.2
  done
}

talk() { (cd "$root" && .venv/bin/python -m tests.deploy.talk "http://127.0.0.1:$port" "$1"); }

# Sets DATABASE_URL and REDIS_URL to servers that hold nothing yet.
start_databases() {
  local programs become=() database_port
  programs=$(find /usr/lib/postgresql -name initdb -printf '%h\n' | sort -V | tail -1)
  mkdir "$work/postgres"
  if [ "$(id -u)" = 0 ]; then
    chmod 755 "$work"
    chown postgres "$work/postgres"
    become=(runuser -u postgres --)
  fi
  (cd "$work/postgres" && "${become[@]}" "$programs/initdb" -D data -A trust -U postgres) > /dev/null
  database_port=$(python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
  start "${become[@]}" "$programs/postgres" -D "$work/postgres/data" -k "$work/postgres" -p "$database_port" -h 127.0.0.1
  start redis-server --port 0 --unixsocket "$work/redis.sock" --unixsocketperm 777 --save ''
  until "$programs/pg_isready" --quiet -h 127.0.0.1 -p "$database_port" && [ -S "$work/redis.sock" ]; do sleep 0.2; done
  export DATABASE_URL=postgres://postgres@127.0.0.1:$database_port/postgres REDIS_URL=unix://$work/redis.sock
}
