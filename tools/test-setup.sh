#!/usr/bin/env bash
# `npm run test:setup`: installs what some specs need of the machine and npm cannot bring. On Debian and Ubuntu, as
# root. What is already there is left as it is; what is built is kept by version in ATOLL_CACHE_DIR (~/.cache/atoll
# unless given). Without any of it `npm test` runs the other specs, and says what did not run.
set -euo pipefail

cache=${ATOLL_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/atoll}
# Raise the number when the content changes.
base=base-1
docker=docker-1
loki_version=v3.7.8

packages=(curl podman runc conmon catatonit netavark aardvark-dns iptables iproute2 debootstrap python3-venv)
# Chromium's shell without a desktop has a package of its own in newer releases of Debian alone.
if apt-cache show chromium-headless-shell >/dev/null 2>&1; then packages+=(chromium-headless-shell); else packages+=(chromium); fi
# Together in one tree: pods and doors run from it as an image, bare-metal hosts as a chroot.
base_packages=ca-certificates,procps,sudo,openssh-server,nginx-light,libnginx-mod-stream,socat,busybox-static,wget

cd "$(dirname "${BASH_SOURCE[0]}")/.."

step() { printf '\n== %s\n' "$1"; }

cat <<TEXT
This installs, by apt: ${packages[*]}
and makes, in $cache: a base image (Debian, with $base_packages), the programs of Docker (unpacked, not installed: no service is
started), an environment of Python with Schemathesis, and Grafana Loki $loki_version, which is built where Go is found.
TEXT

mkdir -p "$cache"

missing=()
for package in "${packages[@]}"; do
  dpkg-query --show --showformat='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  step "apt-get install ${missing[*]}"
  if [ "$(id -u)" -ne 0 ]; then
    echo "Run this as root, or: sudo apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

make_base() (
  if [ ! -f "$cache/$base.tar" ]; then
    step "the base image"
    tree=$(mktemp -d "$cache/$base.XXXXXX")
    trap 'rm -rf "$tree"' EXIT
    debootstrap --variant=minbase --include="$base_packages" bookworm "$tree" >"$cache/$base.log"
    rm -rf "$tree"/var/cache/apt/* "$tree"/var/lib/apt/lists/* "$tree"/usr/share/{doc,man,locale}/*
    tar --numeric-owner -C "$tree" -cf "$cache/$base.tar.new" .
    mv "$cache/$base.tar.new" "$cache/$base.tar"
    rm -rf "$tree"
  fi
  if [ ! -d "$cache/$base" ]; then
    mkdir -p "$cache/$base.new"
    tar --numeric-owner -C "$cache/$base.new" -xf "$cache/$base.tar"
    mv "$cache/$base.new" "$cache/$base"
  fi
  if [ ! -d "$cache/$base.images" ]; then
    step "the store of images that Podman reads in specs"
    work=$(mktemp -d "$cache/$base.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    podman --root "$work/images" --runroot "$work/run" --tmpdir "$work/tmp" --storage-driver overlay import "$cache/$base.tar" localhost/atoll-base:1 >/dev/null
    mv "$work/images" "$cache/$base.images"
  fi
)

# Beside the engine of the machine, if it has one, and without a service.
unpack_docker() (
  [ ! -d "$cache/$docker" ] || exit 0
  step "the programs of Docker"
  work=$(mktemp -d "$cache/$docker.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  cd "$work"
  # Newer releases of Debian have its client in a package of its own.
  download() {
    local packages=(docker.io containerd tini)
    if apt-cache show docker-cli >/dev/null 2>&1; then packages+=(docker-cli); fi
    apt-get download -qq "${packages[@]}"
  }
  download 2>/dev/null || { apt-get update -qq && download; }
  for package in *.deb; do dpkg --extract "$package" unpacked; done
  mkdir programs
  for program in dockerd docker docker-proxy docker-init containerd containerd-shim-runc-v2; do
    cp --dereference unpacked/usr/*bin/"$program" programs/
  done
  mv programs "$cache/$docker"
)

build_loki() (
  [ ! -x "$cache/loki-$loki_version" ] || exit 0
  if ! command -v go >/dev/null; then
    echo "Go was not found: Loki is not built, and the specs of logs in Loki will not run." >&2
    exit 0
  fi
  step "Loki $loki_version (some minutes)"
  build=$(mktemp -d "$cache/loki.XXXXXX")
  trap 'rm -rf "$build"' EXIT
  cd "$build"
  source=$(go mod download -json "github.com/grafana/loki/v3@$loki_version" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
  # Loki's own module with its replacements, less those that point into its repository.
  sed -e 's|^module .*|module atoll.dev/loki|' -e '/^ignore /d' -e '/pkg\/push => \.\/pkg\/push/d' "$source/go.mod" >go.mod
  cp "$source/go.sum" go.sum
  go mod edit -require "github.com/grafana/loki/v3@$loki_version"
  CGO_ENABLED=0 GOFLAGS=-mod=mod go build -trimpath -ldflags '-s -w' -o "$cache/loki-$loki_version.new" github.com/grafana/loki/v3/cmd/loki
  mv "$cache/loki-$loki_version.new" "$cache/loki-$loki_version"
)

# By its requirements. An environment of Python cannot be moved once it is made, so one set-up at a time makes it, and
# it is whole when the marker is there. That of a former Python finds its packages no more.
install_schemathesis() (
  environment=$cache/schemathesis-$(sha256sum tools/schemathesis/requirements.txt | cut -c1-16)
  exec 9>"$environment.lock"
  flock 9
  if [ -f "$environment/installed" ] && "$environment/bin/python" -c 'import schemathesis' 2>/dev/null; then exit 0; fi
  step "Schemathesis"
  rm -rf "$environment"
  requirements=(--quiet --no-cache-dir --disable-pip-version-check --requirement tools/schemathesis/requirements.txt)
  if python3 -m venv "$environment" && "$environment/bin/pip" install "${requirements[@]}"; then
    touch "$environment/installed"
  else
    echo "Schemathesis was not installed; npm test will try again, and say so where it cannot." >&2
  fi
)

# One loads and computes while the other unpacks. What runs in the background does not hear of an interrupt by itself.
trap 'kill 0' INT
make_base &
base_job=$!
build_loki &
loki_job=$!
unpack_docker &
docker_job=$!
install_schemathesis &
schemathesis_job=$!
failed=0
wait "$base_job" || failed=1
wait "$loki_job" || failed=1
wait "$docker_job" || failed=1
wait "$schemathesis_job" || failed=1
[ "$failed" -eq 0 ] || exit 1

step "ready"
