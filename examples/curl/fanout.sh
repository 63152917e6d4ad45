#!/bin/sh
# A durable fan-out with nothing but a shell, curl, sed, tr and base64. It starts
# a run with a row for each line of standard input, is its worker, and prints
# the results in the order of the lines:
#
#	printf '%s\n' foo bar | fanout.sh WORKFLOW-ID tr a-z A-Z
#
# The command gets a line on standard input. What it prints is the result; an
# exit code other than 0 fails the attempt, and the row is tried again, three
# times in all. Ended and started again with the same ID and lines it goes on
# where it was. The server is UMBEL_URL, by default that of `umbel dev`; its
# lease must be 3 s or longer. The lines must fit one call: 1 MiB.
#
# docs/protocol.md explains the calls.
set -eu

url=${UMBEL_URL:-http://127.0.0.1:7890}
if [ $# -lt 2 ]; then
	echo "usage: fanout.sh WORKFLOW-ID COMMAND [ARGUMENT ...] < lines" >&2
	exit 2
fi
workflow=$1
shift
case $workflow in *[!A-Za-z0-9_.-]*)
	echo "fanout.sh: the workflow ID must be letters, digits, '_', '.' and '-'" >&2
	exit 2
	;;
esac
worker=fanout.sh-$$-$(date +%s)
scratch=$(mktemp -d)
token=
renewer=

# call SERVICE/METHOD posts the JSON on standard input and prints the reply. It
# repeats a call that the server could not answer; every call may be repeated.
call() {
	curl --silent --show-error --fail-with-body --retry 10 --retry-connrefused --max-time 65 \
		--header 'Content-Type: application/json' --data-binary @- "$url/umbel.v1.$1"
}

# field NAME prints the first text of that name in the JSON on standard input:
# good enough for base64, tokens and cursors, which hold no quotes.
field() { sed -n "s/.*\"$1\": *\"\\([^\"]*\\)\".*/\\1/p"; }

encode() { base64 | tr -d '\n'; }

# report ITEM says what became of the row in hand.
report() {
	printf '{"worker": "%s", "items": [{"token": "%s", %s}]}' "$worker" "$token" "$1" |
		call WorkerService/Report >/dev/null
	token=
}

stop_renewing() {
	if [ -n "$renewer" ]; then
		kill "$renewer" 2>/dev/null || true
		wait "$renewer" 2>/dev/null || true
		renewer=
	fi
}

# Whoever ends early gives its row back, which spends no attempt.
finish() {
	stop_renewing
	if [ -n "$token" ]; then
		report '"outcome": "OUTCOME_RELEASED"' || true
	fi
	rm -rf "$scratch"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# renew SECONDS renews the lease of the row in hand every so often, until it is
# killed: it sleeps in short naps, so that none outlives it for long.
renew() {
	naps=0
	while sleep 1; do
		naps=$((naps + 1))
		if [ $((naps % $1)) -eq 0 ]; then
			printf '{"worker": "%s", "tokens": ["%s"]}' "$worker" "$token" | call WorkerService/Renew || true
		fi
	done
}

# Start: one call, all rows or none.
{
	printf '{"workflowId": "%s", "types": [{"type": "%s", "retry": {"maxAttempts": 3, "initial": "0.2s"}}], "rows": [' \
		"$workflow" "$workflow"
	separator=
	while IFS= read -r line || [ -n "$line" ]; do
		printf '%s{"type": "%s", "input": {"contentType": "text/plain", "data": "%s"}}' \
			"$separator" "$workflow" "$(printf %s "$line" | encode)"
		separator=,
	done
	printf ']}'
} >"$scratch/start"
call WorkflowService/Commit <"$scratch/start" >"$scratch/started" || {
	cat "$scratch/started" >&2
	exit 1
}

# Work: a row at a time, until the run is closed. While a row is in hand its
# lease is renewed every third of it.
while :; do
	printf '{"workflowId": "%s"}' "$workflow" | call WorkflowService/Describe >"$scratch/run"
	if grep -q '"closedAt"' "$scratch/run"; then
		break
	fi
	printf '{"worker": "%s", "types": ["%s"], "wait": "2s"}' "$worker" "$workflow" |
		call WorkerService/Poll >"$scratch/row"
	token=$(field token <"$scratch/row")
	if [ -z "$token" ]; then
		continue
	fi
	lease=$(field lease <"$scratch/row" | sed 's/[.s].*//')
	every=$((lease / 3))
	renew $((every > 0 ? every : 1)) >/dev/null 2>&1 &
	renewer=$!
	sed -n 's/.*"input": *{[^}]*"data": *"\([^"]*\)".*/\1/p' "$scratch/row" | base64 -d >"$scratch/input"
	code=0
	"$@" <"$scratch/input" >"$scratch/output" || code=$?
	stop_renewing
	if [ "$code" -eq 0 ]; then
		report "\"outcome\": \"OUTCOME_COMPLETED\", \"result\": {\"contentType\": \"text/plain\", \"data\": \"$(encode <"$scratch/output")\"}"
	else
		report "\"outcome\": \"OUTCOME_FAILED\", \"failure\": {\"type\": \"ExitCode\", \"message\": \"the command exited with $code\"}"
	fi
done

# Results: a row a page, by ordinal.
cursor=
failed=0
while :; do
	printf '{"workflowId": "%s", "ordered": true, "limit": 1, "cursor": "%s"}' "$workflow" "$cursor" |
		call WorkflowService/Results >"$scratch/page"
	if grep -q '"status": *"completed"' "$scratch/page"; then
		sed -n 's/.*"result": *{[^}]*"data": *"\([^"]*\)".*/\1/p' "$scratch/page" | base64 -d
	elif grep -q '"status"' "$scratch/page"; then
		echo "fanout.sh: a row $(field status <"$scratch/page"): $(field message <"$scratch/page")" >&2
		failed=1
	fi
	if grep -q '"done": *true' "$scratch/page"; then
		exit "$failed"
	fi
	cursor=$(field next <"$scratch/page")
done
