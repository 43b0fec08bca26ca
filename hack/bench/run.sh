#!/bin/sh
# Builds what is measured and installs the peers that are missing (Debian, as
# root), then measures. Arguments go to the bench: -rounds, -turn, -only, …
set -eu
cd "$(dirname "$0")/../.."
hack/bench/peers.sh
(cd hack/bench && go build -trimpath -o ../../dist/bench/bench .)
exec dist/bench/bench -sidecar bin/sidecar -out dist/bench "$@"
