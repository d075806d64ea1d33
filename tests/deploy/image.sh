#!/usr/bin/env bash
# Builds the image without a registry of images, on a base of Debian's python3, by buildah in a chroot, and talks to it:
# under a user id that it does not know, on a root that is read-only, by its own command and by those of compose.yaml.
# Needs root. What is built stays in var/image.
set -euo pipefail
work=$(mktemp -d)
. "$(dirname "$0")/running.sh"
largest_mb=700
cd "$root"
kept=$root/var/image
mkdir -p "$kept"
buildah() { command buildah --root "$kept/storage" --runroot "$kept/run" "$@"; }

if ! buildah inspect --type image voiceapp-base > /dev/null 2>&1; then
  rm -rf "$kept/base"
  debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates stable "$kept/base" >> "$work/log"
  # What no program reads, as in images of registries.
  rm -rf "$kept"/base/usr/share/{doc,info,man,locale}/* "$kept"/base/var/{cache/apt,lib/apt/lists}/*
  # What this machine says about the networks that pip uses.
  cp -L /etc/ssl/certs/ca-certificates.crt "$kept/base/etc/ssl/certs/"
  [ ! -e /etc/pip.conf ] || cp /etc/pip.conf "$kept/base/etc/"
  container=$(buildah from scratch)
  buildah copy --quiet "$container" "$kept/base" / > /dev/null
  buildah commit --quiet --rm "$container" voiceapp-base
  rm -rf "$kept/base"
fi
buildah bud --isolation chroot --format docker --build-arg BASE=localhost/voiceapp-base --tag voiceapp \
  --file Containerfile .
buildah images

container=$(buildah from voiceapp)
trap 'end; buildah rm "$container" > /dev/null' EXIT
files=$(buildah mount "$container")
size_mb=$(du --summarize --apparent-size --block-size=1MB "$files" | cut -f1)
echo "The image has $size_mb MB."
[ "$size_mb" -le $largest_mb ]
[ ! -e "$files/app/.env" ]
of_image() { buildah inspect --type image --format "{{range .Docker.Config.$1}}{{.}}{{\"\\n\"}}{{end}}" voiceapp; }
mapfile -t variables < <(of_image Env)
mapfile -t command < <(of_image Cmd)
mapfile -t health < <(of_image Healthcheck.Test)

# The command line that runs a command in a container with this folder for its data.
in_container='mount --make-rprivate / && mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" &&
  mount -t tmpfs tmpfs "$0/tmp" && mount --bind "$1" "$0/var/lib/voiceapp" && mount --bind /dev "$0/dev" &&
  mount -t proc proc "$0/proc" && root=$0 && shift &&
  exec chroot --userspec=12345:0 "$root" env -i HOME=/tmp "$@"'
container() {
  mkdir -p "$work/$1"
  chmod 770 "$work/$1"
  run=(unshare --mount sh -c "$in_container" "$files" "$work/$1" "${variables[@]}" PORT="$port" ALLOWED_HOSTS=127.0.0.1
    SECRET_KEY="$(openssl rand -hex 32)" "${@:2}" env --chdir=/app)
}

container alone
start "${run[@]}" "${command[@]}"
until_ready
talk "$("${run[@]}" python manage.py createkey --account Acme)"
"${run[@]}" "${health[@]:1}"
if "${run[@]}" touch /app/file 2> /dev/null; then echo "Its root can be written."; exit 1; fi
stop_last
echo "Alone: ready, talked, healthy, stopped."

start_databases
of_compose() {
  .venv/bin/python -c 'import sys, yaml
print("\n".join(yaml.safe_load(open("compose.yaml"))["services"][sys.argv[1]]["command"]))' "$1" | sed "s/^8000$/$port/"
}
container together TASK_ENGINE=worker DATABASE_URL="$DATABASE_URL" REDIS_URL="$REDIS_URL"
mapfile -t migrate < <(of_compose migrate)
mapfile -t web < <(of_compose web)
mapfile -t worker < <(of_compose worker)
"${run[@]}" "${migrate[@]}"
start "${run[@]}" "${worker[@]}"
start "${run[@]}" "${web[@]}"
start "${run[@]}" "${web[@]}"
until_ready
key=$("${run[@]}" python manage.py createkey --account Acme)
for _ in 1 2 3 4; do talk "$key"; done
for _ in web web worker; do stop_last; done
echo "By compose.yaml: migrated, two processes ready on one port, talked, stopped."
