#!/bin/sh
# Installs the peers that are missing (Debian, as root).
set -eu
missing=
command -v redis-server >/dev/null || missing="$missing redis-server"
command -v beanstalkd >/dev/null || missing="$missing beanstalkd"
command -v taskset >/dev/null || missing="$missing util-linux"
if [ -n "$missing" ]; then
	if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
		echo "cannot measure without$missing: install them, or run this as root on Debian" >&2
		exit 1
	fi
	apt-get update -qq
	# The bench starts its own; none is to run as a service.
	RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
fi
