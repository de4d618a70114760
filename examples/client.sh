#!/bin/sh
# One question to a running server: client.sh SOCKET WORDS…
# Prints each answer as a line of JSON; the last one is `complete`. With netcat: nc -N -U "$socket"
set -eu
if [ $# -lt 2 ]; then
    echo 'usage: client.sh SOCKET WORDS… (`tertulia serve --detach` prints the socket)' >&2
    exit 2
fi
socket=$1
shift
words=$(printf '%s' "$*" | sed 's/[\\"]/\\&/g')
printf '{"type":"initialize","demo_mode":true}\n{"type":"query","query":"%s","id":1}\n' "$words" |
    socat -t 60 - "UNIX-CONNECT:$socket"
