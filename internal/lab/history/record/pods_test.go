package record

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/history"
)

// look is the lines of one whole look, at a minute.
func look(minute int, lines ...string) string {
	at := minute * 60
	text := ""
	for _, l := range append(lines, `"seen":true`) {
		text += fmt.Sprintf(`{"at":%d,%s}`+"\n", at, l)
	}
	return text
}

// begun is a look that begins a file or a process; the last one before was at another minute, or never.
func begun(minute, after int, lines ...string) string {
	return look(minute, append([]string{fmt.Sprintf(`"begin":"kubernetes","every":60,"after":%d`, after*60)}, lines...)...)
}

const two = `"hosts":[{"name":"n","devices":{"nvidia.com/gpu":2}}]`

// aPod is a Pod's line; keys are more of its keys, as `"node":"n"`. Those of instants are in minutes.
func aPod(uid string, keys string) string {
	for _, key := range []string{"scheduled", "ended", "created"} {
		if _, rest, is := strings.Cut(keys, `"`+key+`":`); is {
			var minute int
			_, _ = fmt.Sscan(strings.FieldsFunc(rest, func(c rune) bool { return c < '0' || c > '9' })[0], &minute)
			keys = strings.Replace(keys, fmt.Sprintf(`"%s":%d`, key, minute), fmt.Sprintf(`"%s":%d`, key, minute*60), 1)
		}
	}
	if !strings.Contains(keys, "devices") {
		keys += `,"devices":{"nvidia.com/gpu":1}`
	}
	return fmt.Sprintf(`"pods":[{"uid":"%s","namespace":"x","name":"%s",%s}]`, uid, uid, keys)
}

func left(uid string, minute int) string {
	return fmt.Sprintf(`"left":[{"uid":"%s","at":%d}]`, uid, minute*60)
}

// closed is the history of a cluster's files, the same in both orders.
func closed(t *testing.T, files ...string) *history.History {
	t.Helper()
	var first *history.History
	for range 2 {
		b := history.NewBook(history.Options{})
		for i, text := range files {
			if err := Read(b, strings.NewReader(text), fmt.Sprint(i)); err != nil {
				t.Fatal(err)
			}
		}
		h, err := b.Close()
		if err != nil {
			t.Fatal(err)
		}
		if first != nil && fmt.Sprintf("%+v", shown(h)) != fmt.Sprintf("%+v", shown(first)) {
			t.Errorf("in another order\n%v\nnot\n%v", shown(h), shown(first))
		}
		first = h
		slices.Reverse(files)
	}
	return first
}

// shown are runs in minutes, absences and oddities.
func shown(h *history.History) (out []string) {
	minute := func(t quantity.Instant) string {
		if t == quantity.Never {
			return "-"
		}
		return fmt.Sprint(float64(t) / float64(time.Minute))
	}
	for i := range h.Runs {
		r := &h.Runs[i]
		load := h.Loads[r.Load][0]
		out = append(out, fmt.Sprintf("%s %s..%s %s %d %s", r.ID, minute(r.Start), minute(r.End), r.State, load.Count,
			h.Kinds[load.Kind].Name))
	}
	for _, n := range h.Nodes {
		for _, a := range n.Away {
			out = append(out, fmt.Sprintf("%s %s %s-%s", n.Name, a.Why, minute(a.From), minute(a.To)))
		}
	}
	for _, o := range h.Oddities {
		out = append(out, fmt.Sprintf("%s: %d", o.Name, o.Count))
	}
	return out
}

// TestPods: what becomes of Pods, nodes and times that nobody watched.
func TestPods(t *testing.T) {
	const node = `"node":"n","scheduled":9`
	away := "a time in which nobody looked at the cluster: 1"
	for name, c := range map[string]struct {
		files []string
		want  []string
	}{
		"goes on": {[]string{begun(10, 0, two, aPod("a", node)) + look(11)}, []string{"x/a 9..11 running 1 gpu"}},
		"its end is exact": {[]string{begun(10, 0, two, aPod("a", node)) + look(11) +
			look(12, aPod("a", `"node":"n","scheduled":9,"ended":11,"phase":"Succeeded"`)) + look(13)},
			[]string{"x/a 9..11 completed 1 gpu"}},
		"over, and no container says when": {[]string{begun(10, 0, two, aPod("a", node)) + look(11) +
			look(12, aPod("a", `"node":"n","scheduled":9,"phase":"Failed"`)) + look(13)}, []string{"x/a 9..12 failed 1 gpu"}},
		"seen deleted": {[]string{begun(10, 0, two, aPod("a", node)) + look(11) + look(13, left("a", 12))},
			[]string{"x/a 9..12 unclear 1 gpu"}},
		"came and went between looks": {[]string{begun(8, 0, two) + look(10, aPod("a", node), left("a", 10))},
			[]string{"x/a 9..10 unclear 1 gpu"}},
		"waits, and is bound": {[]string{begun(8, 0, two, aPod("a", `"created":7`)) + look(9) +
			look(10, aPod("a", `"created":7,"node":"n","scheduled":9`)) + look(11)}, []string{"x/a 9..11 running 1 gpu"}},
		"waits still, and no more": {[]string{begun(8, 0, two, aPod("a", `"created":7`), aPod("b", `"created":6`), aPod("c", node)) +
			look(9) + look(10, left("b", 10))}, []string{"x/c 9..10 running 1 gpu", "x/b -..- cancelled 1 gpu", "x/a -..- pending 1 gpu"}},
		"on over midnight": {[]string{begun(10, 0, two, aPod("a", node), aPod("b", node)) + look(11),
			begun(12, 11, two, aPod("b", node)) + look(13, left("b", 13))}, // a's last word is lost
			[]string{"x/a 9..12 unclear 1 gpu", "x/b 9..13 unclear 1 gpu"}},
		"gone while nobody watched": {[]string{begun(10, 0, two, aPod("a", node), aPod("b", node)) + look(11) +
			begun(30, 11, two, aPod("b", `"node":"n","scheduled":9,"ended":25,"phase":"Succeeded"`)) + look(31)},
			[]string{"x/a 9..11 unclear 1 gpu", "x/b 9..25 completed 1 gpu", "n not recorded 11-30",
				"a Pod that was gone when somebody looked again: 1", away}},
		"gone while the watch was broken": {[]string{begun(10, 0, two, aPod("a", node)) + look(11) + look(30, left("a", 30)) + look(31)},
			[]string{"x/a 9..11 unclear 1 gpu", "n not recorded 11-30", "a Pod that was gone when somebody looked again: 1", away}},
		"over while the watch was broken": {[]string{begun(10, 0, two, aPod("a", node)) + look(11) +
			look(30, aPod("a", `"node":"n","scheduled":9,"phase":"Failed"`)) + look(31)},
			[]string{"x/a 9..11 failed 1 gpu", "n not recorded 11-30", "a Pod that was gone when somebody looked again: 1", away}},
		"no time of its binding": {[]string{begun(10, 0, two) + look(11, aPod("a", `"node":"n"`)) + look(12)},
			[]string{"x/a 11..12 running 1 gpu"}},
		"the last look is cut off": {[]string{begun(10, 0, two, aPod("a", node)) + look(11) + `{"at":720,` + aPod("b", node) + "}\n" +
			`{"at":72`},
			[]string{"x/a 9..11 running 1 gpu", "x/b 9..11 running 1 gpu", "a line of a record that is none: 1"}},
		"Sluice's own": {[]string{begun(10, 0, two, aPod("a", node+`,"priorityClass":"sluice-leftover"`), aPod("b", node)) + look(11)},
			[]string{"x/b 9..11 running 1 gpu", "a Pod of Sluice itself: 1"}},
		"claims": {[]string{begun(10, 0, two, aPod("a", node+`,"claims":true,"devices":{}`), aPod("b", node+`,"claims":true`)) + look(11)},
			[]string{"x/b 9..11 running 1 gpu", "a Pod whose devices are those of a DRA claim: 1",
				"a Pod with claims of DRA beside its devices: 1"}},
		"shares": {[]string{begun(10, 0, `"hosts":[{"name":"n","devices":{"nvidia.com/gpu":4},"product":"A-SHARED","replicas":4}]`,
			aPod("a", node), aPod("b", node)) + look(11)}, []string{"x/a 9..11 running 1 A"}},
		"slices": {[]string{begun(10, 0, `"hosts":[{"name":"n","devices":{"nvidia.com/mig-1g.10gb":4}}]`,
			aPod("a", node+`,"devices":{"nvidia.com/mig-1g.10gb":3}`)) + look(11)}, []string{"x/a 9..11 running 3 1g.10gb"}},
		"cordoned, not ready, gone and back": {[]string{begun(10, 0, two, aPod("a", node)) + look(11) +
			look(12, `"hosts":[{"name":"n","devices":{"nvidia.com/gpu":2},"unschedulable":true}]`) +
			look(13, `"hosts":[{"name":"n","devices":{"nvidia.com/gpu":2},"notReady":true}]`) + look(14, two) +
			look(15, `"gone":["n"]`) + look(16) + look(17, two) + look(18, `"hosts":[{"name":"n","devices":{"nvidia.com/gpu":0}}]`)},
			[]string{"x/a 9..18 running 1 gpu", "n drained 12-13", "n down 13-14", "n down 15-17", "n down 18-21"}},
		"a node that comes late and does not stay": {[]string{begun(10, 0, two, aPod("a", node)) +
			look(11, `"hosts":[{"name":"m","devices":{"nvidia.com/gpu":1}}]`), begun(12, 11, two, aPod("a", node))},
			[]string{"x/a 9..12 running 1 gpu", "m down 0-11", "m down 12--"}},
		"another number of devices": {[]string{begun(10, 0, two, aPod("a", node)) +
			look(11, `"hosts":[{"name":"n","devices":{"nvidia.com/gpu":1}}]`)},
			[]string{"x/a 9..11 running 1 gpu", "a node that had other devices at times: 1"}},
		"what can't be": {[]string{begun(10, 0, two, aPod("a", node), `"pods":[{"uid":"","name":"c"},{"uid":"d","devices":{"x":-1}},`+
			`{"uid":"e","ended":-5}]`, `"hosts":[{"name":""},{"name":"h","replicas":-1}]`, left("a", 500), left("", 5)) + look(11)},
			[]string{"x/a 9..11 running 1 gpu", "a Pod or a node of Kubernetes that can't be read: 7"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := shown(closed(t, c.files...)); !slices.Equal(got, c.want) {
				t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(c.want, "\n  "))
			}
		})
	}
}
