//go:build kubernetes

package soak

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// world is a made-up run of the soak in which all is as it should be: two subjobs, one after the other on the one slice of a machine.
type world struct {
	work    []workload
	outputs []output
	notes   map[string][]note
	lives   []life
	ahead   map[string]time.Duration
}

func at(seconds float64) time.Time {
	return time.Unix(1000, 0).Add(time.Duration(seconds * float64(time.Second)))
}

func newWorld() *world {
	w := &world{work: []workload{{name: "job", chain: true, total: 4, life: 2}}, notes: map[string][]note{},
		ahead: map[string]time.Duration{"m": 2 * time.Second}}
	values := w.work[0].values()
	for i, token := range []string{"1-1", "1-2"} {
		o := output{name: "outputs/" + token, job: "job", token: token, from: int64(2 * i), to: int64(2*i + 2)}
		begin := float64(10 * i)
		list := []note{{at(begin), token, "began", o.from}}
		for u := o.from; u < o.to; u++ {
			o.text += fmt.Sprintln(u, 2, token, values[u])
			list = append(list, note{at(begin + float64(u-o.from) + 1), token, "did", u})
		}
		w.outputs, w.notes["job"] = append(w.outputs, o), append(w.notes["job"], list...)
		w.lives = append(w.lives, life{
			name: "pod-" + token, uid: token, machine: "m", token: token, slice: "m/0", end: at(begin + 5), patience: 4 * time.Second,
			start: at(begin + 2), finish: at(begin + 6),
		})
	}
	return w
}

func (w *world) judge() []string {
	return slices.Concat(judgeOutputs(w.work, w.outputs, w.notes), judgeNotes(w.notes), judgePods(w.lives, w.notes, 1, w.ahead))
}

// TestTheOracle: it finds nothing wrong with a run in which nothing is, and each thing that is.
func TestTheOracle(t *testing.T) {
	if wrong := newWorld().judge(); len(wrong) > 0 {
		t.Fatalf("of a right world it says %v", wrong)
	}
	for name, c := range map[string]struct {
		break_ func(w *world)
		want   string
	}{
		"a unit twice":  {func(w *world) { w.outputs = append(w.outputs, w.outputs[1]) }, "units [2,4) are committed 2 times"},
		"a unit lost":   {func(w *world) { w.outputs[1].to-- }, "units [3,4) are committed 0 times"},
		"all lost":      {func(w *world) { w.outputs = nil }, "units [0,4) are committed 0 times"},
		"a wrong value": {func(w *world) { w.outputs[0].text = strings.Replace(w.outputs[0].text, " 2 ", " 3 ", 1) }, "for unit 0"},
		"a wrong base": {func(w *world) {
			w.outputs[1].text = fmt.Sprintln(2, 2, "1-2", mix(7, 2)) + strings.SplitAfter(w.outputs[1].text, "\n")[1]
		}, "for unit 2"},
		"a line twice":           {func(w *world) { w.outputs[0].text += w.outputs[0].text }, "for unit 0"},
		"another's output":       {func(w *world) { w.outputs[0].token = "1-2" }, "for unit 0"},
		"a range of nothing":     {func(w *world) { w.outputs[0].to = 9 }, "no range of units"},
		"output of no job":       {func(w *world) { w.outputs[0].job = "other" }, "output of no job"},
		"a unit that nobody did": {func(w *world) { w.notes["job"] = slices.Delete(w.notes["job"], 1, 2) }, "its program has not done it"},
		"a wrong checkpoint":     {func(w *world) { w.notes["job"][0].what = "wrong" }, "a checkpoint of another step"},
		"a program twice":        {func(w *world) { w.notes["job"] = append(w.notes["job"], w.notes["job"][0]) }, "was started 2 times"},
		"a Pod twice": {func(w *world) { w.lives = append(w.lives, life{name: "pod-1-1", uid: "other", machine: "m"}) },
			"made twice"},
		"an overlap of Pods": {func(w *world) { w.lives[1].start = at(5) }, "machine m has 2 at once: pod-1-1, pod-1-2"},
		"an overlap on a slice": {func(w *world) {
			w.notes["job"][2].at = at(10.5)
			w.lives[1].machine, w.lives[0].end = "other", at(10)
		}, "slice m/0 has 2 at once: 1-1, 1-2"},
		"a host beside us": {func(w *world) {
			w.lives = append(w.lives, life{name: "host", uid: "h", machine: "m", start: at(5), finish: at(7)})
		}, "at once: pod-1-1, host"},
		"a late Pod":           {func(w *world) { w.lives[0].finish = at(15) }, "pod-1-1 ended 4s after"},
		"a late program":       {func(w *world) { w.notes["job"][2].at = at(9) }, "1-1 worked 4s after its lease"},
		"a Pod that is no one": {func(w *world) { w.lives = w.lives[:1] }, "no Pod of it was seen"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			c.break_(w)
			if wrong := w.judge(); !slices.ContainsFunc(wrong, func(s string) bool { return strings.Contains(s, c.want) }) {
				t.Errorf("it says %q, want %q", wrong, c.want)
			}
		})
	}
}

// TestNotesAreRead: what programs write is read as it is, but for a line in which its writer was killed.
func TestNotesAreRead(t *testing.T) {
	got := parseNotes("1000.500000 1-1 began 0\n1001.250000 1-1 did 0\nnonsense\n1002.0 1-1 did")
	want := []note{{at(0.5), "1-1", "began", 0}, {at(1.25), "1-1", "did", 0}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
