#!/usr/bin/env bash
# A newcomer's first hour, in a minute: from a fresh clone, with README's words only, to a fan-out over two workers on
# a Redis with AOF. It runs the commands of README's sh blocks as they stand there, in their order, up to that section's end,
# and fails if one of them fails or needs a program that README does not name.
#
#	test/newcomer.sh [REPOSITORY]
#
# REPOSITORY, by default the one that this file is in, is cloned as it was committed last. Go takes its modules from the
# cache of the machine where they are there. What is started is ended, whatever happens.
set -euo pipefail

repository=${1:-$(cd "$(dirname "$0")/.." && pwd)}
last='Two workers on a Redis with AOF' # the section to get to

# What README says one needs, what these programs and its commands are made of, and nothing else.
needs='go git redis-server'
basics='bash sh cat find grep mkdir printf sed seq sha256sum sleep tr'

scratch=$(mktemp -d)
session=
finish() {
	if [ -n "$session" ]; then
		kill -KILL -- "-$session" 2>/dev/null || true # the group of the session, and all that it has started
		wait "$session" 2>/dev/null || true
	fi
	chmod -R u+w "$scratch" && rm -rf "$scratch"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

fail() {
	echo "newcomer: $*" >&2
	exit 1
}

# commands prints README's sh blocks, each with its section before it, up to the end of the last one.
commands() {
	awk -v last="$last" '
		!code && /^## / { if (section == last) exit; section = substr($0, 4) }
		/^```/ { if (code) { code = 0 } else if ($0 == "```sh") { code = 1; print "echo \"== " section "\" >&2" } else { code = 2 } ; next }
		code == 1' "$repository/README.md"
}

# free prints a port that nobody listens on.
free() {
	local port
	while port=$((RANDOM % 20000 + 20000)); do
		if ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
			echo "$port"
			return
		fi
	done
}

mkdir "$scratch/bin" "$scratch/home" "$scratch/desk"
for program in $needs $basics; do
	path=$(type -P "$program") || fail "README says that one needs $program, or its commands do, and it is not on PATH"
	ln -s "$path" "$scratch/bin/$program"
done

# README clones from where the project is published; here that is this repository.
url=$(commands | sed -n 's/^git clone \([^ ]*\).*/\1/p')
[ -n "$url" ] || fail "README does not say where to clone from"
[ -d "$repository/.git" ] || [ -f "$repository/.git" ] || fail "$repository is no git repository"
cat >"$scratch/home/.gitconfig" <<CONFIG
[url "file://$repository"]
	insteadOf = $url
[safe]
	directory = *
[advice]
	detachedHead = false
CONFIG

{
	# As somebody types them whose default ports may be taken: README reads these two.
	printf 'UMBEL_ADDR=127.0.0.1:%s REDIS_PORT=%s\n' "$(free)" "$(free)"
	echo 'set -eu -o pipefail'
	commands
} >"$scratch/session"
grep -q "^echo \"== $last\"" "$scratch/session" || fail "README has no section '$last' with commands"

go_settings=()
for name in GOCACHE GOMODCACHE GOPROXY GONOSUMDB GOSUMDB GOFLAGS GOTOOLCHAIN; do
	go_settings+=("$name=$(go env "$name")")
done
set -m # a process group for the session
(cd "$scratch/desk" && exec env -i HOME="$scratch/home" PATH="$scratch/bin" LC_ALL=C "${go_settings[@]}" \
	bash "$scratch/session" </dev/null >"$scratch/out" 2>"$scratch/err") &
session=$!
set +m
code=0
wait "$session" || code=$?
if [ "$code" -ne 0 ]; then
	cat "$scratch/out" "$scratch/err" >&2
	fail "README's commands ended with $code; above is what they said"
fi

# What must have come of it.
says() { grep -qF -- "$1" "$scratch/out" || { cat "$scratch/out" "$scratch/err" >&2; fail "README's commands did not print: $1"; }; }
for n in $(seq 100); do
	says "ITEM $n"
done
[ "$(grep -c '^ITEM ' "$scratch/out")" -eq 100 ] || fail "there are more results than rows"
says THREE
[ -d "$scratch/desk/umbel/data/redis/appendonlydir" ] || [ -f "$scratch/desk/umbel/data/redis/appendonly.aof" ] || fail "Redis kept no append-only file"
grep -q 'durability=always' "$scratch/err" || fail "the server did not find Redis to sync always"
[ "$(grep -c 'worker started' "$scratch/err")" -ge 3 ] || fail "two workers did not start"
echo "newcomer: README's words lead to a fan-out over two workers on a Redis with AOF"
