#!/usr/bin/env bash
# Runs a broker with demo topics on a socket of this user's, and prints what to
# try. Ctrl-C ends it and removes the socket's directory.
#
# usage: hack/run.sh PROGRAM
set -euo pipefail

program=$(realpath "${1:?usage: hack/run.sh PROGRAM}")
dir=$(mktemp -d "${XDG_RUNTIME_DIR:-/tmp}/podmq.XXXXXX")
trap 'rm -rf "$dir"' EXIT

export PODMQ_SOCKET=${PODMQ_SOCKET:-$dir/podmq.sock}
export PODMQ_TOPICS=${PODMQ_TOPICS:-'orders?partitions=2&groups=billing,email; payments?groups=ledger'}
export PODMQ_METRICS_ADDR=${PODMQ_METRICS_ADDR:-127.0.0.1:9789}
export PODMQ_LOG_FORMAT=${PODMQ_LOG_FORMAT:-text}

cat <<EOF
A broker with the topics orders and payments. In another terminal:

  export PODMQ_SOCKET=$PODMQ_SOCKET

  # publish, take, acknowledge
  curl --unix-socket \$PODMQ_SOCKET -X POST 'http://podmq/v1/topics/orders/messages?key=user-a' -d 'hello'
  curl --unix-socket \$PODMQ_SOCKET -X POST 'http://podmq/v1/topics/orders/groups/billing/poll?wait=5s'
  curl --unix-socket \$PODMQ_SOCKET -X POST 'http://podmq/v1/topics/orders/groups/billing/ack?receipt=RECEIPT'

  # look
  $program topics
  $program tail orders
  curl http://$PODMQ_METRICS_ADDR/metrics

Ctrl-C ends it.

EOF
# The broker ends by the same Ctrl-C; this script waits for it and tidies up.
trap : INT TERM
"$program" serve &
broker=$!
until wait "$broker"; do
	status=$?
	kill -0 "$broker" 2>/dev/null || exit "$status" # else a signal interrupted the wait
	kill -TERM "$broker" 2>/dev/null || :
done
