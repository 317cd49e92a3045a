package record

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/history"
)

// head begins a record with a node of two devices.
const head = `{"at":1000,"begin":"slurm","every":60}` + "\n" + `{"at":1000,"nodes":["NodeName=n1 Gres=gpu:2 State=IDLE"]}` + "\n"

const title = "JobIDRaw\\u001fState\\u001fStart\\u001fEnd\\u001fAllocTRES\\u001fNodeList"

// TestLines: what a line says, and what is said of one that is none.
func TestLines(t *testing.T) {
	const seen = `{"at":1000,"seen":true}` + "\n" + `{"at":1060,"seen":true}` + "\n"
	row := func(fields ...string) string { return `"` + strings.Join(fields, "\\u001f") + `"` }
	ran := `{"at":1060,"jobs":["` + title + `",` + row("1", "COMPLETED", "1010", "1050", "gres/gpu=1", "n1") + `]}` + "\n"
	for name, c := range map[string]struct {
		text string
		runs int
		odd  string
		err  string
	}{
		"a run":          {text: head + ran + seen, runs: 1},
		"cut":            {text: head + ran + seen + `{"at":10`, runs: 1, odd: "a line of a record that is none"},
		"cut first":      {text: `{"at` + "\n" + head + ran + seen, runs: 1, odd: "a line of a record that is none"},
		"no instant":     {text: head + ran + seen + `{"seen":true}`, runs: 1, odd: "a line of a record that is none"},
		"a bad job":      {text: head + ran + seen + `{"at":1060,"ended":[{"id":"x","start":5}]}`, runs: 1, odd: badJob},
		"later than now": {text: head + ran + seen + `{"at":1060,"ended":[{"id":"1","start":5000}]}`, runs: 1, odd: badJob},
		"a row too short": {text: head + ran + seen + `{"at":1060,"jobs":["` + title + `","2"]}`, runs: 1,
			odd: "a row with too few fields"},
		"never seen": {text: head + ran, runs: 1},
		"seen once":  {text: head + ran + `{"at":1000,"seen":true}`, err: "covers no time"},
		"no job":     {text: head + seen, err: "no job was read"},
	} {
		if !Format().Is([]byte(c.text), "") {
			t.Errorf("%s: not known", name)
		}
		b := history.NewBook(history.Options{})
		if err := Read(b, strings.NewReader(c.text), "2026-11-28.jsonl"); err != nil {
			t.Fatal(err)
		}
		h, err := b.Close()
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v, want %q", name, err, c.err)
			}
			continue
		}
		if err != nil || len(h.Runs) != c.runs || len(h.Devices) != 2 {
			t.Errorf("%s: %v, %+v", name, err, h)
			continue
		}
		h.Oddities = slices.DeleteFunc(h.Oddities, func(o history.Oddity) bool { return strings.HasPrefix(o.Name, "rows without") })
		if found := len(h.Oddities) == 1 && h.Oddities[0].Name == c.odd; c.odd != "" && !found || c.odd == "" && len(h.Oddities) > 0 {
			t.Errorf("%s: %+v, want %q", name, h.Oddities, c.odd)
		}
	}
}

// TestAReservationEndsWhenItSays: one that ran out before the look that has it no more held nothing in between.
func TestAReservationEndsWhenItSays(t *testing.T) {
	text := head + `{"at":1000,"reservations":["ReservationName=r StartTime=1010 EndTime=1030 Nodes=n1",` +
		`"ReservationName=s StartTime=1100 EndTime=9000 Nodes=n1"],"seen":true}` + "\n" +
		`{"at":1060,"jobs":["` + title + `","1\u001fCOMPLETED\u001f1010\u001f1050\u001fgres/gpu=1\u001fn1"],"seen":true}` + "\n" +
		`{"at":1120,"reservations":[],"seen":true}` + "\n" + `{"at":1180,"seen":true}` + "\n"
	b := history.NewBook(history.Options{})
	if err := Read(b, strings.NewReader(text), "x"); err != nil {
		t.Fatal(err)
	}
	h, err := b.Close()
	if err != nil {
		t.Fatal(err)
	}
	want := []history.Away{{From: instant(1010), To: instant(1030), Why: history.Reserved},
		{From: instant(1100), To: instant(1120), Why: history.Reserved}}
	if !slices.Equal(h.Nodes[0].Away, want) {
		t.Errorf("away %+v, want %+v", h.Nodes[0].Away, want)
	}
}

// FuzzRead: whatever a file has in it, a history or an error, and holds and absences that are sound.
func FuzzRead(f *testing.F) {
	f.Add([]byte(head + `{"at":1060,"jobs":["` + title + `","1\u001fRUNNING\u001f1010\u001fUnknown\u001fgres/gpu=1\u001fn1"],` +
		`"running":[{"id":"1","start":1010}],"seen":true}` + "\n" + `{"at":2000,"ended":[{"id":"1","start":1010}],"gone":["n1"],` +
		`"reservations":["ReservationName=r StartTime=1000 EndTime=3000 Nodes=n1"],"seen":true}`))
	f.Add([]byte(`{"at":5,"begin":"slurm","every":-1,"after":4,"nodes":["NodeName=","x"],"reservations":null}` + "\n" + head))
	f.Add([]byte(`{"at":60,"begin":"kubernetes","every":60,"hosts":[{"name":"n","devices":{"nvidia.com/gpu":4},"replicas":2}],"pods":[` +
		`{"uid":"a","name":"a","node":"n","scheduled":50,"devices":{"nvidia.com/gpu":1}}],"seen":true}` + "\n" +
		`{"at":120,"left":[{"uid":"a","at":110}],"hosts":[{"name":"n","notReady":true}],"seen":true}` + "\n" + `{"at":500,"seen":true}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		b := history.NewBook(history.Options{})
		if err := Read(b, bytes.NewReader(content), "x"); err != nil {
			t.Fatal(err)
		}
		h, err := b.Close()
		if err != nil {
			return
		}
		for i, holds := range h.Held {
			last := quantity.Instant(0)
			for _, x := range holds {
				if x.From < last || x.To <= x.From {
					t.Fatalf("hold %+v behind %d", x, last)
				}
				last = x.To
			}
			for g := range h.Idle(i, true) {
				if g.From < h.From || g.To > h.To || g.To <= g.From {
					t.Fatalf("gap %+v of %d to %d", g, h.From, h.To)
				}
			}
		}
	})
}
