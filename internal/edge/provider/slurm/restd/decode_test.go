package restd

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestNumbers(t *testing.T) {
	for text, want := range map[string]Number{
		`5`:    {Given: true, Set: true, N: 5},
		`-1`:   {Given: true, Set: true, N: -1},
		`1.0`:  {Given: true, Set: true, N: 1},
		`"5"`:  {Given: true, Set: true, N: 5},
		`null`: {Given: true},
		`{"set": true, "infinite": false, "number": 240}`:       {Given: true, Set: true, N: 240},
		`{"set": false, "infinite": true, "number": 0}`:         {Given: true, Infinite: true},
		`{"set": true, "infinite": true, "number": 4294967295}`: {Given: true, Infinite: true},
		`{"set": false, "infinite": false, "number": 0}`:        {Given: true},
		`{}`:                   {Given: true},
		`4294967294`:           {Given: true},
		`4294967295`:           {Given: true, Infinite: true},
		`18446744073709551614`: {Given: true},
		`18446744073709551615`: {Given: true, Infinite: true},
		`9223372036854775807`:  {Given: true, Set: true, N: 1<<63 - 1},
	} {
		var n Number
		if err := json.Unmarshal([]byte(text), &n); err != nil || n != want {
			t.Errorf("%s: %+v, %v: want %+v", text, n, err, want)
		}
	}
	for _, text := range []string{`"x"`, `""`, `true`, `[5]`, `1.5`, `1e300`, `9223372036854775808`, `{"set": true}`, `{"set": 1}`,
		`{"set": true, "number": "x"}`, `{"set": true, "number": 1.5}`} {
		var n Number
		if err := json.Unmarshal([]byte(text), &n); err == nil {
			t.Errorf("%s was taken for %+v", text, n)
		}
	}
}

func TestMoments(t *testing.T) {
	at := Number{Set: true, N: 1796049983}
	if got, err := at.Time("x"); err != nil || !got.Equal(time.Date(2026, 11, 30, 14, 46, 23, 0, time.UTC)) || got.Location() != time.UTC {
		t.Errorf("%v, %v", got, err)
	}
	for _, n := range []Number{{}, {Set: true}, {Infinite: true}} {
		if got, err := n.Time("x"); err != nil || !got.IsZero() {
			t.Errorf("%+v: %v, %v: want no time", n, got, err)
		}
	}
	for _, n := range []Number{{Set: true, N: -1}, {Set: true, N: 1 << 60}} {
		if got, err := n.Time("start_time"); err == nil || !strings.Contains(err.Error(), "start_time") {
			t.Errorf("%+v: %v, %v", n, got, err)
		}
	}
}

func TestWords(t *testing.T) {
	for text, want := range map[string]Words{`""`: nil, `null`: nil, `[]`: {}, `"idle"`: {"idle"}, `"a,b"`: {"a", "b"},
		`["A", "B"]`: {"A", "B"}} {
		var w Words
		if err := json.Unmarshal([]byte(text), &w); err != nil || len(w) != len(want) || len(w) > 0 && !reflect.DeepEqual(w, want) {
			t.Errorf("%s: %q, %v: want %q", text, w, err, want)
		}
	}
	for _, text := range []string{`5`, `[1]`, `{}`} {
		var w Words
		if err := json.Unmarshal([]byte(text), &w); err == nil {
			t.Errorf("%s was taken for %q", text, w)
		}
	}
}

// Of a job's states squeue shows the one that says most.
func TestTheStateOfSeveral(t *testing.T) {
	for want, states := range map[string]Words{"RUNNING": {"RUNNING"}, "COMPLETING": {"CANCELLED", "COMPLETING"},
		"CONFIGURING": {"RUNNING", "CONFIGURING", "POWER_UP_NODE"}, "PREEMPTED": {"PREEMPTED"}, "PENDING": {"PENDING", "EXPEDITING"},
		"REQUEUE_HOLD": {"pending", "requeue_hold"}} {
		j := Job{States: states}
		if got := j.State(); got != want {
			t.Errorf("%q: %s, want %s", states, got, want)
		}
	}
}

// samples are answers below testdata: those of v0.0.38 as 22.05.8 has given them, and those of v0.0.45 by their published description.
func samples(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) < 8 {
		t.Fatalf("%q, %v: want the samples", files, err)
	}
	out := map[string][]byte{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		out[strings.TrimSuffix(filepath.Base(f), ".json")] = text
	}
	return out
}

// What both forms say of the same cluster is the same.
func TestBothFormsSayTheSame(t *testing.T) {
	text := samples(t)
	for _, what := range []string{"jobs", "nodes", "reservations", "partitions"} {
		var got [2]string
		for i, version := range []string{"v38", "v45"} {
			a, err := parse(text[version+"-"+what])
			if err != nil {
				t.Fatalf("%s of %s: %v", what, version, err)
			}
			got[i] = told(&a)
		}
		if got[0] != got[1] || got[0] == "" {
			t.Errorf("%s: v0.0.38 says\n%s\nand v0.0.45\n%s", what, got[0], got[1])
		}
	}
}

// told is what an answer says, but for what the older form can't.
func told(a *answer) string {
	var b strings.Builder
	say := func(v ...any) {
		text, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		b.Write(append(text, '\n'))
	}
	plain := func(n Number) any {
		if n.Set {
			return n.N
		}
		return nil
	}
	if a.Jobs != nil {
		for i := range *a.Jobs {
			j := &(*a.Jobs)[i]
			say(plain(j.ID), j.Name, j.UserName, j.State(), j.Reason, plain(j.Start), plain(j.End), plain(j.PreemptTime), plain(j.Limit),
				j.Nodes, plain(j.CPUs), plain(j.MemoryPerNode))
		}
	}
	if a.Nodes != nil {
		for i := range *a.Nodes {
			n := &(*a.Nodes)[i]
			say(n.Name, append(n.States.Upper(), n.Flags.Upper()...), n.Partitions, append(Words{}, n.Features...),
				plain(n.CPUs), plain(n.AllocCPUs), plain(n.RealMemory), plain(n.AllocMemory), n.Gres, n.GresUsed)
		}
	}
	if a.Reservations != nil {
		for _, r := range *a.Reservations {
			say(r.Name, plain(r.Start), plain(r.End), r.Nodes)
		}
	}
	if a.Partitions != nil {
		for i := range *a.Partitions {
			p := &(*a.Partitions)[i]
			say(p.Name, plain(p.Longest()))
		}
	}
	return b.String()
}

// A list of something that is not what it should be is refused whole.
func TestListsThatLackSomething(t *testing.T) {
	for _, text := range []string{`{"jobs": [{}]}`, `{"jobs": [{"job_id": 0, "job_state": "RUNNING", "time_limit": 1, "end_time": 1}]}`,
		`{"jobs": [{"job_id": 1, "job_state": [], "time_limit": 1, "end_time": 1}]}`,
		`{"jobs": [{"job_id": 1, "job_state": "RUNNING", "end_time": 1}]}`, `{"jobs": {}}`, `{"jobs": [7]}`, `{"nodes": [{"name": "n0"}]}`,
		`{"nodes": [{"name": "n0", "state": "idle", "cpus": 4, "real_memory": 1000, "alloc_cpus": 0}]}`,
		`{"reservations": [{"name": "r"}]}`, `{"partitions": [{"name": "p"}]}`, `{"errors": 5}`, `[]`, `"jobs"`, ``, `{"jobs": [`} {
		if a, err := parse([]byte(text)); err == nil {
			t.Errorf("%s was taken for %+v", text, a)
		}
	}
}

// Whatever is answered, what is read is whole: no job without an id and a state, no number below its bounds, and no error without words.
func FuzzAnswer(f *testing.F) {
	for _, text := range samples(f) {
		f.Add(text)
	}
	f.Add([]byte("<html><body>502 Bad Gateway</body></html>"))
	f.Fuzz(func(t *testing.T, text []byte) {
		a, err := parse(text)
		if err != nil {
			if !reflect.DeepEqual(a, answer{}) {
				t.Errorf("an error and %+v", a)
			}
			return
		}
		var r *Refusal
		if said := errors.As(refusal(500, a.Errors), &r); said != (len(a.Errors) > 0) || said && r.Text == "" {
			t.Errorf("%+v says %v", a.Errors, r)
		}
		if a.Jobs == nil {
			return
		}
		for i := range *a.Jobs {
			j := &(*a.Jobs)[i]
			if j.ID.N <= 0 || j.State() == "" && len(j.States) == 0 {
				t.Errorf("%+v is no job", j)
			}
			for _, n := range []Number{j.ID, j.Start, j.End, j.Limit, j.CPUs, j.MemoryPerNode} {
				if n.Set && n.Infinite || !n.Set && n.N != 0 || (n.Set || n.Infinite) && !n.Given {
					t.Errorf("%+v is no number", n)
				}
				if at, err := n.Time("x"); err == nil && !at.IsZero() && at.Unix() != n.N {
					t.Errorf("%+v is %v", n, at)
				}
			}
		}
	})
}
