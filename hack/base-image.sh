#!/usr/bin/env bash
# Makes the image that the example app and the end-to-end tests stand on where
# no image can be pulled: Python, Node.js, Ruby and curl out of Debian's
# packages, and nothing else.
#
# usage: hack/base-image.sh [IMAGE]     (default podmq-base:1)
#
#   PODMQ_E2E_CACHE   what is kept for later (default ~/.cache/podmq-e2e)
#
# For root on Debian, with Docker running. Takes two minutes the first time and
# nothing afterwards. Where images can be pulled, none of this is needed: each
# Dockerfile of the example names the official image of its language as BASE.
set -euo pipefail

image=${1:-podmq-base:1}
cache=${PODMQ_E2E_CACHE:-$HOME/.cache/podmq-e2e}
suite=bookworm
packages=ca-certificates,curl,nodejs,procps,python3,ruby

say() { echo "base-image: $*" >&2; }

digest=$(printf '%s\0' "$image" "$suite" "$packages" "$(cat "${BASH_SOURCE[0]}")" | sha256sum | cut -c1-16)
archive=$cache/base-$digest.tar
label=io.podmq.base=$digest
if [ -n "$(docker images --quiet --filter "label=$label" "$image")" ]; then
	say "$image: there"
	exit 0
fi

if [ ! -f "$archive" ]; then
	if ! command -v debootstrap >/dev/null; then
		apt-get update -qq
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends debootstrap >/dev/null
	fi
	mkdir -p "$cache"
	work=$(mktemp -d "$cache/base.XXXXXX")
	trap 'rm -rf "$work"' EXIT
	started=$SECONDS
	debootstrap --variant=minbase --include="$packages" "$suite" "$work/root" >"$cache/base.log"
	rm -rf "$work"/root/{var/cache/apt,var/lib/apt/lists,var/log,usr/share/{man,info,locale,doc}}/*
	# A test may run as any user, so the image has no user of its own.
	tar --numeric-owner -C "$work/root" -cf "$work/root.tar" --exclude=./dev --exclude=./proc --exclude=./sys .
	mv "$work/root.tar" "$archive"
	say "root file system: built in $((SECONDS - started)) s"
fi
docker import --change "LABEL $label" \
	--change 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' \
	--change 'CMD ["/bin/sh"]' "$archive" "$image" >/dev/null
say "$image is in the local Docker"
