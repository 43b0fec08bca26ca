#!/usr/bin/env bash
# Makes the three images of deploy/examples/orders.
#
# usage: hack/example-images.sh [BASE]
#
#   BASE   one image that has Python, Node.js and Ruby, such as the one that
#          hack/base-image.sh makes; default: the official image of each language
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../deploy/examples/orders"

docker buildx version >/dev/null 2>&1 || export DOCKER_BUILDKIT=0
for part in web worker audit; do
	docker build --quiet ${1:+--build-arg "BASE=$1"} --tag "orders-$part:1" "$part" >/dev/null
	echo "orders-$part:1"
done
