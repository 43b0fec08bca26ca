#!/bin/sh
# A producer and a consumer for PodMQ: a POSIX shell and curl, no jq.
#
#     podmq.sh produce TOPIC [N]
#     podmq.sh consume TOPIC GROUP
#
# A shell cannot hold every byte in a variable and does not read JSON; so it polls
# one message at a time with format=raw: the payload is the body, the rest headers.
set -u
socket=${PODMQ_SOCKET:-/run/podmq/podmq.sock}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# once METHOD PATH [CURL OPTIONS]: one request; $status is 000 when the broker is
# away. curl runs behind a wait, which a signal ends at once.
once() {
    method=$1 target=$2
    shift 2
    curl -s --unix-socket "$socket" --max-time 30 -X "$method" -D "$tmp/headers" -o "$tmp/body" \
        -w '%{http_code}' "$@" "http://podmq$target" >"$tmp/status" &
    wait $! || { status=000; return; }
    status=$(cat "$tmp/status")
}

# header NAME: its value in the last answer.
header() { tr -d '\r' <"$tmp/headers" | grep -i "^$1:" | cut -d ' ' -f 2-; }

# pause SECONDS: a sleep that a signal ends at once.
pause() { sleep "$1" & wait $!; }

# call: as once, but it does not give up: what the broker cannot take now (429,
# 503) is tried again when it says, and a broker that is away is waited for. A
# publish repeated so may arrive twice.
call() {
    delay=1
    while :; do
        once "$@"
        case $status in
        000)
            echo 'broker away, trying again' >&2
            pause $delay
            [ $delay -ge 4 ] || delay=$((delay * 2))
            ;;
        429 | 503) pause "$(header retry-after)" ;;
        *) return ;;
        esac
    done
}

must() {
    call "$@"
    [ "$status" -lt 400 ] || { echo "refused: $(cat "$tmp/body")" >&2; exit 1; }
}

produce() {
    topic=$1 count=$2 i=0
    while [ $((i += 1)) -le "$count" ]; do
        must POST "/v1/topics/$topic/messages?wait=5s&key=user-$((i % 4))" -H 'Content-Type: text/plain' --data-binary "shell $i"
        echo "$(sed 's/[^0-9]*\([0-9]*\)[^0-9]*\([0-9]*\).*/\1:\2/' "$tmp/body") shell $i"
    done
}

consume() {
    path=/v1/topics/$1/groups/$2 member=shell-$$
    must PUT "$path" # fine when it exists
    # What is not acked goes to the others at once.
    trap 'trap "" TERM; kill $! 2>/dev/null; once DELETE "$path/members/$member"; exit 0' TERM
    while :; do
        call POST "$path/poll?format=raw&max=1&wait=5s&member=$member"
        case $status in
        204) continue ;;                # nothing there
        404) must PUT "$path"; continue ;; # a restarted broker knows only the groups in its settings
        200) ;;
        *) echo "refused: $(cat "$tmp/body")" >&2; exit 1 ;;
        esac
        printf '%s:%s ' "$(header podmq-partition)" "$(header podmq-offset)"
        cat "$tmp/body"
        echo
        call POST "$path/ack?receipt=$(header podmq-receipt)" # the work is done: say so
        # Handed out again since, or by a broker that is gone.
        [ "$status" != 409 ] || echo 'receipt is stale, going on' >&2
    done
}

case ${1-}:$# in
produce:[23]) produce "$2" "${3:-10}" ;;
consume:3) consume "$2" "$3" ;;
*) echo 'usage: podmq.sh produce TOPIC [N] | consume TOPIC GROUP' >&2; exit 1 ;;
esac
