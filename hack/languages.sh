#!/usr/bin/env bash
# Looks for what the tests of the example clients run on. What is missing is
# installed where that is possible (root, Debian); elsewhere it is named, and the
# tests of that language skip and say so.
set -euo pipefail

# program:package
needed=(python3:python3 node:nodejs ruby:ruby php:php-cli javac:default-jdk-headless curl:curl)

packages=()
for n in "${needed[@]}"; do
	command -v "${n%%:*}" >/dev/null || packages+=("${n##*:}")
done
[ ${#packages[@]} -gt 0 ] || exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
	echo "languages: installing ${packages[*]}" >&2
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq >&2 &&
		apt-get install -qq -y --no-install-recommends "${packages[@]}" >/dev/null && exit 0
fi
echo "languages: NOT TESTED for want of: ${packages[*]}" >&2
echo "languages: sudo apt-get install ${packages[*]}" >&2
