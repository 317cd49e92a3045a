//go:build kubernetes

package soak

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// workload is a Job that was applied: the oracle knows what must come out.
type workload struct {
	name string
	// chain: its units are steps, each made of the one before.
	chain bool
	total int64
	// life counts the Jobs that were applied under this name, from 1.
	life int64
}

// mix makes a unit's value, as the programs do: in 64 bits that overflow.
func mix(from, unit int64) int64 { return from*6364136223846793005 + unit + 1442695040888963407 }

// values are those of all units.
func (w *workload) values() []int64 {
	out, state := make([]int64, w.total), w.life
	for i := range w.total {
		out[i] = mix(state, i)
		if w.chain {
			state = out[i]
		}
	}
	return out
}

// note is a line that a program has written for the oracle.
type note struct {
	at    time.Time
	token string
	// what is began, did, ended or wrong, unit where it was.
	what string
	unit int64
}

// parseNotes reads a file of notes. A line that its writer was killed in is no note.
func parseNotes(text string) (list []note) {
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) != 4 || !strings.HasSuffix(line, "\n") {
			continue
		}
		seconds, micros, _ := strings.Cut(words[0], ".")
		s, err1 := strconv.ParseInt(seconds, 10, 64)
		us, err2 := strconv.ParseInt(micros, 10, 64)
		unit, err3 := strconv.ParseInt(words[3], 10, 64)
		if err1 == nil && err2 == nil && err3 == nil {
			list = append(list, note{at: time.Unix(s, us*1000), token: words[1], what: words[2], unit: unit})
		}
	}
	return list
}

// output is what the store has under the name of a committed range.
type output struct {
	name, job, token string
	from, to         int64
	text             string
}

// life is what a watch saw of a Pod that asks for a slice.
type life struct {
	name, uid, machine string
	// Of a subjob: its token, the slice that it was sold, the end of its lease, and how long after that it may take to stop and store.
	token, slice string
	end          time.Time
	patience     time.Duration
	// start and finish of its container, by the clock of its machine, in whole seconds; zero: not seen.
	start, finish time.Time
}

// slack is what a process may be late on a busy machine, and what is lost where times are whole seconds.
const slack = 3 * time.Second

// judgeOutputs returns what is wrong with what was committed: each unit has to be in one output, rightly made, by the subjob whose output
// it is.
func judgeOutputs(work []workload, outputs []output, notes map[string][]note) (wrong []string) {
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	known := map[string]bool{}
	for i := range work {
		w := &work[i]
		known[w.name] = true
		times, want := make([]int, w.total), w.values()
		did := map[string]bool{}
		for _, n := range notes[w.name] {
			if n.what == "did" {
				did[fmt.Sprint(n.token, " ", n.unit)] = true
			}
		}
		for _, o := range outputs {
			if o.job != w.name {
				continue
			}
			if o.from < 0 || o.to > w.total || o.from >= o.to {
				say("%s: no range of units of %s", o.name, w.name)
				continue
			}
			made := map[int64][]string{}
			for line := range strings.Lines(o.text) {
				unit, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
				if u, err := strconv.ParseInt(unit, 10, 64); err == nil {
					made[u] = append(made[u], rest)
				}
			}
			for u := o.from; u < o.to; u++ {
				times[u]++
				if right := fmt.Sprint(w.life, " ", o.token, " ", want[u]); len(made[u]) != 1 || made[u][0] != right {
					say("%s has %q for unit %d, want %q", o.name, made[u], u, right)
				}
				if !did[fmt.Sprint(o.token, " ", u)] {
					say("%s: subjob %s has committed unit %d, and its program has not done it", w.name, o.token, u)
				}
			}
		}
		for from, to := 0, 0; from < len(times); from = to {
			for to = from; to < len(times) && times[to] == times[from]; to++ {
			}
			if n := times[from]; n != 1 {
				say("%s: units [%d,%d) are committed %d times", w.name, from, to, n)
			}
		}
	}
	for _, o := range outputs {
		if !known[o.job] {
			say("%s is the output of no job", o.name)
		}
	}
	return wrong
}

// judgeNotes returns what programs found wrong themselves, and subjobs whose program was started twice.
func judgeNotes(notes map[string][]note) (wrong []string) {
	for job, list := range notes {
		began := map[string]int{}
		for _, n := range list {
			switch n.what {
			case "wrong":
				wrong = append(wrong, fmt.Sprintf("%s: subjob %s began with a checkpoint of another step than %d", job, n.token, n.unit))
			case "began":
				if began[n.token]++; began[n.token] > 1 {
					wrong = append(wrong, fmt.Sprintf("%s: the program of subjob %s was started %d times", job, n.token, began[n.token]))
				}
			}
		}
	}
	return wrong
}

// span is how long something ran somewhere: it did at both ends.
type span struct {
	who, where string
	from, to   time.Time
}

// overlaps returns where more than most ran at once: where one ended just as another began only one did.
func overlaps(spans []span, most int, what string) (wrong []string) {
	spans = slices.Clone(spans)
	slices.SortFunc(spans, func(a, b span) int { return cmp.Or(a.from.Compare(b.from), cmp.Compare(a.who, b.who)) })
	open := map[string][]span{}
	for _, s := range spans {
		there := slices.DeleteFunc(open[s.where], func(o span) bool { return !o.to.After(s.from) })
		there = append(there, s)
		open[s.where] = there
		if len(there) > most {
			names := make([]string, len(there))
			for i, o := range there {
				names[i] = o.who
			}
			wrong = append(wrong, fmt.Sprintf("%s %s has %d at once: %s", what, s.where, len(there), strings.Join(names, ", ")))
		}
	}
	return wrong
}

// ran is when each subjob's program is known to have run: from its first note to its last.
func ran(notes map[string][]note) map[string]span {
	all := map[string]span{}
	for _, list := range notes {
		for _, n := range list {
			s, seen := all[n.token]
			if !seen || n.at.Before(s.from) {
				s.from = n.at
			}
			if !seen || n.at.After(s.to) {
				s.to = n.at
			}
			s.who = n.token
			all[n.token] = s
		}
	}
	return all
}

// judgePods returns what is wrong with the lives of Pods on machines of so many slices, whose clocks are ahead of the operator's: a name
// that was made twice, more that ran than there are slices, two on one slice that was sold, and who outlived a lease.
func judgePods(lives []life, notes map[string][]note, count int, ahead map[string]time.Duration) (wrong []string) {
	named, programs := map[string]string{}, ran(notes)
	var told, onMachines, onSlices []span
	for _, l := range lives {
		if uid := named[l.name]; uid != "" && uid != l.uid {
			wrong = append(wrong, fmt.Sprintf("Pod %s was made twice", l.name))
		}
		named[l.name] = l.uid
		if !l.start.IsZero() && !l.finish.IsZero() {
			told = append(told, span{l.name, l.machine, l.start, l.finish})
		}
		if l.token == "" {
			continue
		}
		if late := l.finish.Add(-ahead[l.machine]).Sub(l.end.Add(l.patience)); !l.finish.IsZero() && late > slack {
			wrong = append(wrong, fmt.Sprintf("Pod %s ended %s after its lease, its grace and its time to store", l.name, late))
		}
		s, seen := programs[l.token]
		if !seen {
			continue
		}
		if late := s.to.Sub(l.end); late > slack {
			wrong = append(wrong, fmt.Sprintf("the program of subjob %s worked %s after its lease", l.token, late))
		}
		s.where = l.machine
		onMachines = append(onMachines, s)
		s.where = l.slice
		onSlices = append(onSlices, s)
		delete(programs, l.token)
	}
	for token := range programs {
		wrong = append(wrong, fmt.Sprintf("the program of subjob %s has run, and no Pod of it was seen", token))
	}
	wrong = append(wrong, overlaps(told, count, "machine")...)
	wrong = append(wrong, overlaps(onMachines, count, "machine")...)
	return append(wrong, overlaps(onSlices, 1, "slice")...)
}
