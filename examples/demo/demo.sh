#!/usr/bin/env bash
# Shows the whole of Sluice on one machine, with simulated slices: the four examples run twice, first cut to fit the windows and then as rigid
# blocks, on the same slices with the same time taken off the market, each from an empty daemon that is killed once on the way and started
# again. Every result is checked. It draws both timelines with one scale, says in words what they show, and fails if a result is wrong or if
# cutting did not fill more. Then three jobs bid for the same slices, one of them through an agent in Python, and it says who won what.
# Meanwhile a memory storm blows on the machine itself, as far as it bears one. `make demo` runs it from the root of the clone; "demo.sh storm"
# is the storm alone. It uses bin/sluice, its own figures (.demo/figures, built from this folder) and sdk/python.
set -euo pipefail
here=examples/demo
figures=.demo/figures

root=$PWD
python=; ! python3 -c 'import json' 2>/dev/null || python=1
live=; { [ ! -t 1 ] || [ "${TERM:-dumb}" = dumb ]; } || live=1
slow=1     # how many times longer all that is planned takes than on an idle machine
wrong=()   # what did not go as it has to
right=0    # results that are right by their examples' own checks
export PYTHONDONTWRITEBYTECODE=1

now() { date +%s.%N; }
calc() { awk "BEGIN { $1 }"; }
# of SECONDS is that time at this machine's pace.
of() { calc "printf \"%g\", $1 * $slow"; }
since() { calc "printf \"%d\", $(now) - $1"; }
# value KEY is the key's value, of each object, in what `sluice ... -o json` prints.
value() { awk -v key="\"$1\":" '$1 == key { sub(/^[^:]*: /, ""); sub(/,$/, ""); gsub(/^"|"$/, ""); print }'; }

# place finds a folder that no other demo works in, empties it, and holds it as long as this runs.
place() {
	local i
	mkdir -p .demo
	for i in '' -2 -3 -4 -5 -6 -7 -8 -9; do
		dir=.demo/demo$i
		exec {lock}>"$dir.lock"
		if flock -n "$lock"; then
			rm -rf "$dir" && mkdir "$dir"
			return
		fi
		exec {lock}>&- # another demo's
	done
	echo "demo: nine demos run in .demo already: wait for one of them" >&2
	exit 1
}

# stretch is a file of jobs as its owner would write it where everything takes longer.
stretch() {
	awk -v slow="$slow" '{
		out = ""
		while (match($0, /(walltime|perItem|perStep|perUnit|restore|checkpoint|grace): [0-9]+(ms|s)/)) {
			split(substr($0, RSTART, RLENGTH), part, ": ")
			ms = slow * (part[2] ~ /ms$/ ? 1 : 1000) * (part[2] + 0)
			out = out substr($0, 1, RSTART - 1) part[1] ": " int(ms) + (ms > int(ms)) "ms"
			$0 = substr($0, RSTART + RLENGTH)
		}
		print out $0
	}'
}

# A small part of each example, as the blocks run it, resting where it would wait for a device: script, environment, and the seconds that it
# takes on an idle machine.
samples() {
	echo "items/count.sh SLUICE_FROM=0 SLUICE_TO=100 PACE=0.13 1.9"
	echo "growing/grow.sh SLUICE_FROM=190 SLUICE_TO=210 PACE=0.03 1.3"
	echo "rigid/sort.sh PRIME=99991 ROOT=1000 PACE=0.1 1.1"
	[ -z "$python" ] || echo "steps/train.py TOTAL_STEPS=200 SLUICE_FROM=0 SLUICE_TO=200 PACE=0.6 2.2"
}

# sample says how many times longer one of them takes here.
sample() {
	local script=$root/examples/$1 at=$root/$dir/pace/$1 began program=sh; shift
	local takes=${!#}
	case $script in *.py) program=python3 ;; esac
	mkdir -p "$at"/{work,output,checkpoint}
	began=$(now)
	(cd "$at/work" && env "${@:1:$#-1}" SLUICE_JOB=pace SLUICE_SUBJOB=pace SLUICE_DEADLINE=2999-01-01T00:00:00Z SLUICE_OUTPUT_DIR="$at/output" \
		SLUICE_CHECKPOINT_DIR="$at/checkpoint" SLUICE_PROGRESS_FILE="$at/progress" SLUICE_NOTICE_FILE="$at/notice" "$program" "$script") >"$at/said" 2>&1 ||
		{ echo "demo: measuring how fast this machine is: $script:" >&2; cat "$at/said" >&2; return 1; }
	calc "print ($(now) - $began) / $takes" >"$at/times"
}

# pace_of reads how many times longer the samples took, and says the pace: that of the slowest and a quarter more, since others may come to a
# machine that is busy already, and at most 4: walltimes are two to five times what the work takes on an idle machine, and half of that is rest.
pace_of() {
	awk '$1 > most { most = $1 } END {
		pace = 1
		if (most > 1.25) { quarters = most * 1.25 * 4; pace = (int(quarters) + (quarters > int(quarters))) / 4 }
		print (pace > 4 ? 4 : pace)
	}'
}

# calibrate runs the samples beside each other and sets the pace.
calibrate() {
	local jobs=() job line
	while read -r line; do
		# shellcheck disable=SC2086 # words of a line
		sample $line & jobs+=($!)
	done < <(samples)
	for job in "${jobs[@]}"; do wait "$job" || exit 1; done
	slow=$(cat "$dir"/pace/*/*/times | pace_of)
	export SLOW=$slow
	if [ "$slow" != 1 ]; then
		printf 'This machine is busy or slow: all times of the demo (walltimes, declared unit times, reservations) are %.2f times as long as on an idle\none on both sides, the work is the same. It takes the longer.\n\n' "$slow"
	fi
}

# start FOLDER GPUS FILE [FLAG...] runs a daemon over FOLDER/data, whose configuration is FILE's text, and returns when all its slices are for
# sale. Its log is FOLDER/log. Ctrl-C reaches us alone, so that what runs is ended in order; if we are killed it gets SIGTERM.
daemon='' # its process
start() {
	local at=$1 gpus=$2 addr='' n
	mkdir -p "$at"
	echo "$3" >"$at/daemon.yml"
	: >"$at/said"
	setpriv --pdeathsig TERM setsid bin/sluice up --data "$at/data" --listen 127.0.0.1:0 --gpus "$gpus" --horizon "$(of 300)s" --config "$at/daemon.yml" \
		"${@:4}" >"$at/said" 2>>"$at/log" {lock}>&- &
	daemon=$!
	for ((n = 0; n < 600; n++)); do
		addr=$(sed -n 's/.* serves on \([^,]*\),.*/\1/p' "$at/said")
		if [ -n "$addr" ]; then
			export SLUICE_SERVER=$addr
			[ "$(bin/sluice slices -o name 2>/dev/null | wc -l)" != $(($(tr -cd + <<<"$gpus" | wc -c) + 1)) ] || return 0
		fi
		kill -0 "$daemon" 2>/dev/null || break
		sleep 0.2
	done
	fail "the daemon did not start, or offers no slices; its log is $at/log"
}

# stop ends the daemon and everything that it started: a subjob would outlive it, as it should, up to the end of its lease.
stop() {
	[ -n "$daemon" ] || return 0
	local names n
	names=$(bin/sluice jobs --state PENDING,RUNNING,SUSPENDED -o name 2>/dev/null) || true
	# shellcheck disable=SC2086 # a word for each job
	[ -z "$names" ] || bin/sluice cancel $names >/dev/null 2>&1 || true
	for ((n = 0; n < 60; n++)); do
		bin/sluice slices -o json 2>/dev/null | value job | grep -q . || break
		sleep 0.25
	done
	kill "$daemon" 2>/dev/null || true
	for ((n = 0; n < 60; n++)); do
		kill -0 "$daemon" 2>/dev/null || break
		sleep 0.25
	done
	kill -9 "$daemon" 2>/dev/null || true
	wait "$daemon" 2>/dev/null || true
	daemon=
}

# fail ends this part of the demo.
fail() { stop; echo "demo: $*" >&2; exit 1; }

# table has a line for each job: name, state, whether it is over, progress, total, running subjobs, and why.
table() {
	bin/sluice jobs -o json | awk '
		{ key = $1; sub(/^ *"[^"]*": /, ""); sub(/,$/, ""); gsub(/^"|"$/, "") }
		{ v[key] = $0 }
		key == "\"reason\":" { print v["\"name\":"], v["\"state\":"], v["\"final\":"], v["\"progress\":"], v["\"total\":"], v["\"running\":"], $0 }'
}

# show TITLE SLICES BEGAN NEWS draws how far the jobs of table are: a line that is drawn again on a terminal, elsewhere one now and then.
show() {
	local at line; at=$(since "$3")
	line=$(awk -v title="$1" -v slices="$2" -v at="$at" -v news="$4" '
		{ n++; running += $6; if ($3 == "true") { done++; share++ } else if ($5) share += $4 / $5 }
		END {
			share /= n ? n : 1; full = sprintf("%12s", ""); empty = full; gsub(/ /, "#", full); gsub(/ /, ".", empty); k = int(12 * share)
			rest = sprintf("%d of %d jobs done, %d slices busy", done, n, running < slices ? running : slices)
			printf "%s %3ds [%s%s] %3.0f%%  %s", title, at, substr(full, 1, k), substr(empty, k + 1), 100 * share, news == "" ? rest : news
		}' <<<"$jobs")
	if [ -n "$live" ]; then
		printf '\r\e[K%s' "$line"
	elif [ "$at" -ge "$next" ]; then
		next=$((at - at % 15 + 15))
		echo "$line"
	fi
}

# say TITLE BEGAN NEWS tells what happened.
say() { [ -n "$live" ] || printf '%s %3ds %s\n' "$1" "$(since "$2")" "$3"; }

running() { awk '{ n += $6 } END { print n + 0 }' <<<"$jobs"; }
over() { ! awk '{ print $3 }' <<<"$jobs" | grep -q false; }
failed() { awk '$3 == "true" && $2 != "COMPLETED" { printf "job %s is %s:", $1, $2; for (i = 7; i <= NF; i++) printf " %s", $i; print "" }' <<<"$jobs"; }

# follow TITLE SLICES [AGAIN...] stays with the jobs to their end. With the words that start the daemon it kills it once after 8 s, while all
# slices are busy and before the first reservation begins, and starts it again: what it had started runs on.
follow() {
	local title=$1 slices=$2 began killed='' fresh=0 news='' bad
	began=$(now); next=0; shift 2
	KILLED=0 SURVIVED=0
	while jobs=$(table) && ! over; do
		[ "$(since "$began")" -lt "$(calc "printf \"%d\", 240 * $slow")" ] || fail "$title: not over after $(of 240)s"
		[ "$(since "$began")" -lt "$fresh" ] || news=
		show "$title" "$slices" "$began" "$news"
		if [ $# -gt 0 ] && [ -z "$killed" ] && [ "$(since "$began")" -ge 8 ] && [ "$(running)" -gt 0 ]; then
			KILLED=$(running) killed=1
			say "$title" "$began" "the daemon is killed; $KILLED subjobs run on"
			kill -9 "$daemon"; wait "$daemon" 2>/dev/null || true
			sleep 1
			start "$@"
			jobs=$(table); SURVIVED=$(running)
			news="it is back; $SURVIVED of $KILLED still run" fresh=$(($(since "$began") + 4))
			say "$title" "$began" "$news"
		fi
		sleep 0.25
	done
	[ -z "$live" ] || printf '\r\e[K'
	bad=$(failed)
	[ -z "$bad" ] || wrong+=("$title: $bad")
	[ $# = 0 ] || [ -n "$killed" ] || wrong+=("$title: all was over before the daemon could be killed")
	export KILLED SURVIVED
}

# check FOLDER EXAMPLE JOB SIZE ... runs the examples' own checks over what was committed, all at once, and counts those that are right.
check() {
	local at=$1 e tests=() names=(); shift
	while [ $# -gt 0 ]; do
		e=${1//\//-}
		"examples/$1/check.sh" "$at/output/$2" "$3" >"$at/$e.check" 2>&1 & tests+=($!); names+=("$e $2")
		shift 3
	done
	for e in "${!tests[@]}"; do
		if wait "${tests[e]}" && grep -q '^ok: ' "$at/${names[e]% *}.check"; then
			right=$((right + 1))
		else
			wrong+=("the result of ${names[e]#* } is wrong: $(tr '\n' ' ' <"$at/${names[e]% *}.check")")
		fi
	done
}

# outputs SIDE FOLDER: the committed outputs are where the checks want them. A block's folder is called after the range of its job, which is one
# unit; the checks want that of the work, so each gets a link with the name of the work.
outputs() {
	local i
	mkdir -p "$2/output"
	if [ "$1" = atoms ]; then
		for i in count-words train big-sort growing; do ln -s "$root/$2/data/output/$i" "$2/output/$i"; done
		return
	fi
	link() {
		local found=("$root/$2/data/output/$1"/*-*)
		mkdir -p "$2/output/$3"
		[ ! -d "${found[0]}" ] || ln -s "${found[0]}" "$2/output/$3/$4" # the check says what is missing
	}
	for i in 1 2 3 4; do link count-words-$i "$2" count-words $(((i - 1) * 1250))-$((i * 1250)); done
	link train "$2" train 0-1000
	link growing "$2" growing 0-320
	ln -s "$root/$2/data/output/big-sort" "$2/output/big-sort"
}

# without leaves the job train, which is a Python program, out of a file of several.
without() {
	if [ -n "$python" ]; then cat; else awk 'BEGIN { RS = "\n---\n"; ORS = "" } !/metadata: \{name: train\}/ { print (n++ ? "\n---\n" : "") $0 }'; fi
}

# side NAME TITLE runs one way of doing the work from an empty daemon to its end.
side() {
	local at=$dir/$1 box=(sim:custom,mem=160Mi+96Mi+64Mi+64Mi 'airlock: {kind: off}') began kind mib begin last slice
	local list=(items count-words 5000 rigid big-sort 999983 growing growing 320)
	[ -z "$python" ] || list+=(steps train 1000)
	start "$at" "${box[@]}"
	began=$(now)
	while read -r kind mib begin last; do
		for slice in $(bin/sluice slices -o name); do
			case $mib:$slice in 0:* | *:*/"${mib}Mi@"*)
				bin/sluice reserve "$slice" --kind "$kind" --source demo --start "+${begin}s" --for "${last}s" >/dev/null ;;
			esac
		done
	done <"$dir/plan"
	(cd "$here" && without <"$1.yaml" | stretch | "$root/bin/sluice" submit - >/dev/null) || fail "the jobs of $1 are refused"
	follow "$2" 4 "$at" "${box[@]}"
	"$figures" keep "$1" "$began" "$dir/$1.json" || wrong+=("$2: no history")
	stop
	outputs "$1" "$at"
	check "$at" "${list[@]}"
}

# bids is the last part: jobs that bid for two slices, one of them through its owner's agent.
bids() {
	local at=$dir/bids began agent
	echo 'Jobs that bid (mechanism jasda, examples/demo/bids.yaml)
  Three jobs wanted the same two slices. Each proposes pieces for the windows on offer and says what they are worth to it; the market
  sells what is worth most together, and holds what was declared against what is observed. The agent of frames is a Python
  program in a process of its own (examples/agents/frames/agent.py).' >"$dir/market"
	if [ -z "$python" ]; then
		echo "  There is no python3 on this machine: this part is left out." >>"$dir/market"
		return
	fi
	start "$at" sim:custom,mem=64Mi+64Mi 'airlock: {kind: off}' --mechanism jasda
	# The jobs meet often, and none takes a slice for all of its work.
	bin/sluice queue set default --max-window "$(of 3)s" >/dev/null
	(cd "$here" && stretch <bids.yaml | "$root/bin/sluice" submit - >/dev/null) || fail "the jobs that bid are refused"
	SLUICE_AGENT_KEY=$(bin/sluice agent key frames) PYTHONPATH=sdk/python setpriv --pdeathsig KILL python3 examples/agents/frames/agent.py frames \
		>"$at/agent" 2>&1 {lock}>&- & agent=$!
	follow "3 of 3, jobs bid    " 2
	# The agent hears that its job is over, and leaves.
	for ((began = 0; began < 60; began++)); do kill -0 $agent 2>/dev/null || break; sleep 0.25; done
	kill -9 $agent 2>/dev/null && wrong+=("the agent did not end with its job")
	wait $agent || wrong+=("the agent failed: $(cat "$at/agent")")
	"$figures" won "$(tail -n 1 "$at/agent")" frames count-words growing >>"$dir/market" || wrong+=("the jobs that bid")
	stop
	mkdir -p "$at/output"
	for began in frames count-words growing; do ln -s "$root/$at/data/output/$began" "$at/output/$began"; done
	check "$at" agents/frames frames 240 items count-words 400 growing growing 80
}

mib=1048576

# weather says which storm this machine bears (its unit in bytes, and the lines in parts per thousand), or why none. The storm's sizes are counted in units: at least 128 MiB,
# more where a thousandth of the memory, which lines are given in, is large. The lines are 5.5, 6.5 and 16 units above what is in use.
weather() {
	awk -v level="$1" -v why="$2" -v capacity="$3" -v used="$4" -v mib=$mib '
		function line(units) { x = (1000 * (used + units * unit) + capacity - 1) / capacity; return int(x) }
		BEGIN {
			if (level == "off" || level == "observe") { print "no subjob can be suspended on this machine (" level ": " why ")"; exit 1 }
			if (capacity <= 0) { print "what memory this machine has is not known"; exit 1 }
			unit = int((2 * (int(capacity / 1000) + 1) + mib - 1) / mib) * mib
			if (unit < 128 * mib) unit = 128 * mib
			if (unit > 256 * mib) { printf "a thousandth of this machine'"'"'s memory, in which its lines are given, is %d MiB: too much for a demo\n", capacity / 1000 / mib; exit 1 }
			if (line(16) > 900) { printf "%d of %d MiB of this machine'"'"'s memory are in use, and a storm is to leave a tenth of it alone\n", used / mib, capacity / mib; exit 1 }
			printf "%d %.3f %.3f %.3f\n", unit, line(5.5) / 1000, line(6.5) / 1000, line(16) / 1000
		}'
}

# storm is the part in which memory runs out on this machine: its lines are put just above what is in use, so that some hundred MiB are a storm,
# and the machine is in no danger. Three processes hold memory (hold.sh): train has 3 units and can't be cut, so nothing of it may be lost; sweep
# and scratch leak up to 2.25 each. A machine that bears no storm is told so, and that is no error.
storm() {
	local at=$dir/storm seen n level why used capacity unit calm severe emergency
	echo 'A memory storm on this machine (Airlock, docs/adr/0046-airlock.md)'
	start "$at/look" sim:custom,mem=64Mi 'airlock: {}'
	for ((n = 0; n < 50; n++)); do
		seen=$(bin/sluice airlock -o json)
		[ "$(value at <<<"$seen")" = null ] && [ "$(value level <<<"$seen" | head -n 1)" != off ] || break
		sleep 0.1
	done
	stop
	level=$(value level <<<"$seen" | head -n 1) why=$(value why <<<"$seen") used=$(value usedBytes <<<"$seen") capacity=$(value capacityBytes <<<"$seen")
	if ! seen=$(weather "$level" "$why" "${capacity:-0}" "${used:-0}"); then
		echo "  It is left out: $seen"
		return
	fi
	read -r unit calm severe emergency <<<"$seen"
	units() { calc "printf \"%d\", $1 * $unit / $mib"; }
	# What is begun is not held against the lines, since most of what is below is others'.
	start "$at" "sim:custom,mem=$(($(units 3) + 64))Mi+$(($(units 2.25) + 64))Mi+$(($(units 2.25) + 64))Mi" \
		"airlock: {calm: $calm, severe: $severe, emergency: $emergency, memory: off}"
	job() {
		printf 'apiVersion: sluice.dev/v1alpha1\nkind: Job\nmetadata: {name: %s}\nspec:\n  priority: %d\n  %s\n  memory: %dMi\n  workdir: .\n' "${@:1:4}"
		printf '  command: [bash, ./hold.sh, "%d", "%d", "%s"]\n  grace: 2s\n' "${@:5}"
	}
	local leaks='items: {total: 60, perItem: 400ms, grid: 1, parallelism: 1}' all=$(($(units 2.25) * mib)) # their leases leave time for suspension
	{
		job train 50 'rigid: {walltime: 40s}' $(($(units 3) + 32)) $(($(units 3) * mib)) $(($(units 3) * mib)) 9; echo ---
		job sweep 5 "$leaks" $(($(units 2.25) + 32)) $((unit / 20)) $all 0.1; echo ---
		job scratch 0 "$leaks" $(($(units 2.25) + 32)) $((unit / 20)) $all 0.1
	} | stretch | (cd "$here" && "$root/bin/sluice" submit - >/dev/null) || fail "the jobs of the storm are refused"
	printf '  Three processes: train (priority 50) has %d MiB and can'"'"'t be cut; sweep (5) and scratch (0) leak up to %d MiB each. The lines are put %d MiB\n  (calm) and %d (severe) above what this machine has in use. %s: %s.\n' \
		"$(units 3)" "$(units 2.25)" "$(units 5.5)" "$(units 6.5)" "$level" "$why"
	watch_storm "$used"
	for n in scratch sweep; do
		bin/sluice explain $n | awk -v job=$n '/^MEMORY/ { on = 1; print "\n  $ sluice explain " job } on && $0 == "" { exit } on { print "    " $0 }'
	done
	conclude_storm
	stop
}

# watch_storm USED looks four times a second, shows once what a person would see in its midst, and draws it: the memory in tenths of the way
# from USED to the severe line, and a letter for each job.
watch_storm() {
	local began shown='' name mark each state final running idle
	began=$(now) idle=$began memory='' stalled=''; declare -gA row=([train]='' [sweep]='' [scratch]='')
	while :; do
		seen=$(bin/sluice airlock -o json) jobs=$(table)
		grown=$(($(value usedBytes <<<"$seen" | head -n 1) - $1))
		mark=$(calc "x = int(10 * $grown / ($(value severeBytes <<<"$seen" | head -n 1) - $1)); print (x < 0 ? 0 : x > 9 ? \"#\" : x)")
		memory+=$mark
		stands=$(awk '{ key = $1; sub(/^ *"[^"]*": /, ""); gsub(/[",]/, "") } key == "\"stands\":" { on = 1 } on && key == "\"job\":" { job = $0 }
			on && key == "\"state\":" { print job, $0 } key == "\"steps\":" { on = 0 }' <<<"$seen")
		while read -r name state final _ _ running _; do
			mark=.
			[ "$running" = 0 ] || mark='='
			if state=$(awk -v job="$name" '$1 == job { print $2; found = 1 } END { exit !found }' <<<"$stands"); then
				case $state in yielding | ending) mark=y ;; *) mark=s ;; esac
			fi
			[ "$final" = false ] || mark=' '
			row[$name]+=$mark
		done <<<"$jobs"
		! over || break
		if [ -z "$shown" ] && grep -q ' suspended' <<<"$stands"; then
			shown=1
			printf '\n  After %ds, in its midst:  $ sluice airlock\n' "$(since "$began")"
			bin/sluice airlock | sed 's/^/    /; s/ *$//'
		fi
		# A build beside it may hold some hundred MiB for minutes, and so long the jobs rightly wait. Where there is room for the largest of them
		# and none runs, one has to begin soon: what counts is the time since it was otherwise last.
		[ "$(running)" = 0 ] && [[ ${memory: -1} = [0-3] ]] || idle=$(now)
		[ "$(since "$idle")" -lt "$(calc "printf \"%d\", 30 * $slow")" ] || { stalled=1; break; }
		[ "$(since "$began")" -lt 900 ] || break
		sleep 0.25
	done
	each=$((1 + (${#memory} - 1) / 80))
	thin() { sed "s/\(.\).\{0,$((each - 1))\}/\1/g; s/ *$//" <<<"$1"; }
	printf '\n  A character for each %dms or more. Memory, as the node heard of it, in tenths of the way from the start to the severe line, # beyond that;\n  = runs, s is suspended, y is asked to yield, . waits:\n' $((each * 250))
	printf '  %-8s %s\n' memory "$(thin "$memory")"
	for name in train sweep scratch; do printf '  %-8s %s\n' $name "$(thin "${row[$name]}")"; done
}

# conclude_storm says in words what came of it.
conclude_storm() {
	local still on asked ended bad mark
	read -r still on asked ended < <(for mark in suspended recovered readdressed reclaimed; do value $mark <<<"$seen" | head -n 1; done | xargs)
	bad=$(failed)
	if [ -n "${stalled:-}" ]; then
		fail "the storm: no job has begun for $(of 30)s although there is room: $(awk '$3 == "false" { printf "%s waits:", $1; for (i = 7; i <= NF; i++) printf " %s", $i; printf "; " }' <<<"$jobs")"
	elif ! over; then
		fail "the storm is not over after 900s: other programs of this machine have $((grown / mib)) MiB more in use than at its start, or the machine is too busy"
	elif [ -n "$bad" ]; then
		fail "the storm: $bad"
	elif [ $((still + asked + ended)) = 0 ]; then
		echo "  Nothing had to be suspended: other programs of this machine gave back what the storm took."
		return
	fi
	printf '  All three are complete. Suspended: %d, resumed: %d, asked to yield: %d, ended: %d.' "$still" "$on" "$asked" "$ended"
	case ${row[train]} in *[sy]*) echo ;; *) echo ' Nothing was done to train.' ;; esac
}

# reveal opens the picture for who sits here: not where the output is no terminal, on a build server, or without a display.
reveal() {
	[ -n "$live" ] && [ -z "${CI:-}" ] && [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ] && command -v xdg-open >/dev/null || return 1
	setsid xdg-open "$1" >/dev/null 2>&1 &
}

# Whoever reads this file as a library, as its tests do, gets the functions above and nothing else.
[ "${BASH_SOURCE[0]}" = "$0" ] || return 0

for need in bin/sluice bin/sluice-shim examples/items/check.sh "$figures"; do
	[ -e "$need" ] || { echo "demo: $need is not here: run \`make demo\` in the root of the clone" >&2; exit 1; }
done
trap 'stop; [ -z "${blown:-}" ] || { kill "$blown" && wait "$blown"; } 2>/dev/null || true' EXIT
trap 'echo "demo: interrupted; what ran is cancelled" >&2; exit 130' INT TERM HUP

place
if [ "${1:-}" = storm ]; then
	calibrate
	storm
	exit
fi
began=$(now)
cat <<'T'
Sluice fills the gaps on GPU slices. The same work runs twice on four simulated slices of one GPU (160, 96, 64 and 64 MiB): first cut to
fit the gaps, then as rigid blocks. Then three jobs bid for the same slices, and meanwhile a memory storm blows. It takes a
little over two minutes on an idle machine.

T
[ -n "$python" ] || echo "There is no python3 on this machine: the job train, which is a Python program, is left out on both sides."
calibrate
# The plan is known before the first job is submitted, and the same on both sides: kind, MiB of the slices it is on (0: all), when it begins and
# how long it lasts. It leaves short gaps, because that is what this is about; on slices that nobody takes back, blocks fill as well.
{
	echo "serving 160 $(of 10) $(of 4)"
	echo "serving 96 $(of 30) $(of 4)"
	echo "maintenance 64 $(of 20) $(of 8)"
	echo "drain 0 $(of 120) $(of 10)"
} >"$dir/plan"
side atoms "1 of 3, cut to fit  "
side blocks "2 of 3, rigid blocks"
(trap stop EXIT; trap 'exit 130' INT TERM HUP; storm >"$dir/weather") & blown=$!
bids
wait $blown || wrong+=("the storm did not end well")
blown=
COLUMNS=${COLUMNS:-$( (tput cols) 2>/dev/null || echo 110)} "$figures" draw "$dir/demo.svg" "$dir/plan" "$dir/atoms.json" "$dir/blocks.json" ||
	wrong+=("the comparison did not show what it is to")
[ ${#wrong[@]} -gt 0 ] || echo "  All $right results are right by their examples' own checks."
printf '\n%s\n\n%s\n' "$(cat "$dir/market")" "$(cat "$dir/weather")"
opened=; ! reveal "$dir/demo.svg" || opened=', which is opened'
printf '\nAll of it took %ss. The timelines as a picture: %s%s\n' "$(since "$began")" "$dir/demo.svg" "$opened"
if [ ${#wrong[@]} -gt 0 ]; then
	printf 'demo: %s\n' "${wrong[@]}" >&2
	echo "Everything is kept in $dir." >&2
	exit 1
fi
rm -rf "$dir"/{atoms,blocks,bids,storm}/data "$dir"/storm/look
