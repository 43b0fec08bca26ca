#!/usr/bin/env bash
# Makes the images that the tests in a kind cluster need, and runs the tests.
#
# usage: hack/e2e.sh [argument of go test...]     such as -run TestPodMQ/installed/AJob
#
#   PODMQ_E2E_BASE   one image with Python, Node.js, Ruby, sh and curl, such as
#                    the one that hack/base-image.sh makes; without it, official
#                    images are pulled
#
# and what test/e2e/cluster/doc.go says. Needs Go, Docker, kubectl and helm. It
# makes a cluster of its own and deletes it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if ! docker version >/dev/null 2>&1; then
	echo 'e2e: there is no Docker' >&2
	[ "${CI:-}" != true ] # a skip on a person's machine, a failure in CI
	exit
fi
hack/image.sh
hack/example-images.sh "${PODMQ_E2E_BASE:-}"
export PODMQ_E2E_CLIENT=${PODMQ_E2E_BASE:-}
if [ -z "$PODMQ_E2E_CLIENT" ]; then
	PODMQ_E2E_CLIENT=curlimages/curl:8.16.0
	docker image inspect "$PODMQ_E2E_CLIENT" >/dev/null 2>&1 || docker pull --quiet "$PODMQ_E2E_CLIENT"
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
cd test/e2e
if go test -tags e2e -count=1 -timeout 20m -parallel 4 -v ./cluster "$@" >"$log" 2>&1; then
	grep -E '^ *--- |^20|^ok' "$log" # each test with its time
else
	cat "$log"
	exit 1
fi
