#!/usr/bin/env bash
# Installs promtool and prometheus, which the tests of alerts and metrics use,
# where they are missing and can be installed: by root, on Debian.
set -euo pipefail

if command -v promtool >/dev/null && command -v prometheus >/dev/null; then
	exit 0
fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
	echo 'prometheus: promtool and prometheus are missing; tests that need them are skipped' >&2
	exit 0
fi
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends prometheus >/dev/null
