#!/usr/bin/env bash
# Makes the broker's image.
#
# usage: hack/image.sh [IMAGE]     (default podmq:<version of the chart>)
#
# Needs Go and Docker, and pulls nothing. Where Docker has no buildx, its classic
# builder makes the same image.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=$(sed -n 's/^appVersion: //p' charts/podmq/Chart.yaml)
image=${1:-podmq:$version}
revision=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)

context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
CGO_ENABLED=0 GOOS=linux go build -trimpath -ldflags "-s -w -X main.version=$version -X main.revision=$revision" -o "$context/sidecar" ./cmd/sidecar

# The size is promised; a dependency that doubles it should be noticed here.
size=$(stat -c %s "$context/sidecar")
if ((size > 16000000)); then
	echo "image: the program has $size bytes, more than 16 MB" >&2
	exit 1
fi
docker buildx version >/dev/null 2>&1 || export DOCKER_BUILDKIT=0
docker build --quiet --file deploy/Dockerfile --tag "$image" \
	--label org.opencontainers.image.title=podmq \
	--label "org.opencontainers.image.version=$version" \
	--label org.opencontainers.image.licenses=Apache-2.0 \
	--label org.opencontainers.image.source=https://github.com/podmq/podmq \
	"$context" >/dev/null
echo "$image: $size bytes, version $version"
