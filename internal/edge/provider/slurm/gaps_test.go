package slurm

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/edge/provider"
)

// At each moment the gaps that hold it have as many pilots as there is room for then, host by host and minute by minute.
func TestGapsAreTheRoomOfEachMoment(t *testing.T) {
	now := time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
	const minutes = 60
	at := func(m int) time.Time { return now.Add(time.Duration(m) * time.Minute) }
	rapid.Check(t, func(t *rapid.T) {
		draw := func(what string, least, most int) int { return rapid.IntRange(least, most).Draw(t, what) }
		want := room{cpus: int64(draw("cpus", 1, 2)), memory: int64(draw("memory", 0, 2)) << 20}
		if draw("gres", 0, 1) == 1 {
			want.gres = []gres{{"gpu", []string{"", "a"}[draw("kind", 0, 1)], int64(draw("count", 1, 2))}}
		}
		var hosts []host
		var others []booking
		var waiting, rows []row
		for i := range draw("hosts", 1, 3) {
			h := host{name: fmt.Sprint("n", i), total: room{8, 8 << 20, []gres{{"gpu", "a", 4}, {"gpu", "b", 2}}}}
			h.free = room{8, 8 << 20, slices.Clone(h.total.gres)}
			for j := range draw("jobs", 0, 3) {
				r := row{id: fmt.Sprint(i, "-", j), state: "RUNNING", start: at(-5), end: at(draw("end", -3, minutes+5)),
					hosts: []string{h.name}, cpus: int64(draw("used", 1, 2)), memory: int64(draw("mem", 0, 2)) << 20,
					gres: []gres{{"gpu", "a", int64(draw("gpus", 0, 1))}}}
				h.free.add(room{-r.cpus, -r.memory, []gres{{"gpu", "a", -r.gres[0].count}}})
				rows = append(rows, r)
			}
			hosts = append(hosts, h)
			if draw("booked", 0, 2) == 0 {
				from := draw("from", -5, minutes)
				others = append(others, booking{"b", at(from), at(from + draw("for", 1, 20)), map[string]bool{h.name: true}})
			}
			if draw("expected", 0, 2) == 0 {
				w := row{state: "PENDING", start: at(draw("start", -2, minutes)), meant: []string{h.name}}
				if draw("limited", 0, 1) == 1 {
					w.end = w.start.Add(time.Duration(draw("limit", 1, 20)) * time.Minute)
				}
				waiting = append(waiting, w)
			}
		}
		var own *booking
		if draw("own", 0, 3) == 0 {
			from := draw("own from", -5, minutes)
			own = &booking{"own", at(from), at(from + draw("own for", 1, 40)), nil}
		}
		gaps := between(now, want, hosts, others, own, waiting, rows)
		for m := range minutes {
			room := 0
			for _, h := range hosts {
				room += roomAt(at(m), now, want, h, others, own, waiting, rows)
			}
			for _, g := range gaps {
				if !g.Start.After(at(m)) && (g.End.IsZero() || g.End.After(at(m))) {
					room -= g.Count
				}
			}
			if room != 0 {
				t.Fatalf("at minute %d there is room for %d more than %v say", m, room, gaps)
			}
		}
		if !slices.IsSortedFunc(gaps, func(a, b provider.Gap) int { return a.Start.Compare(b.Start) }) {
			t.Fatalf("%v: want them in order", gaps)
		}
		for _, g := range gaps {
			if g.Count < 1 || g.Start.Before(now) || !g.End.IsZero() && !g.End.After(g.Start) {
				t.Fatalf("%v is no gap", g)
			}
		}
	})
}

// roomAt is how many pilots a host has room for at one moment, by the definition.
func roomAt(at, now time.Time, want room, h host, others []booking, own *booking, waiting, rows []row) int {
	in := func(start, end time.Time) bool { return !at.Before(start) && (end.IsZero() || at.Before(end)) }
	if own != nil && !in(own.start, own.end) {
		return 0
	}
	for _, b := range others {
		if b.hosts[h.name] && in(b.start, b.end) {
			return 0
		}
	}
	for _, w := range waiting {
		if w.meant[0] == h.name && in(w.start, w.end) {
			return 0
		}
	}
	cpus, memory, a, b := h.free.cpus, h.free.memory, int64(0), int64(0)
	for _, g := range h.free.gres {
		if g.kind == "a" {
			a += g.count
		} else {
			b += g.count
		}
	}
	for _, r := range rows {
		if r.hosts[0] == h.name && r.end.After(now) && !r.end.After(at) {
			cpus, memory, a = cpus+r.cpus, memory+r.memory, a+r.gres[0].count
		}
	}
	n := 0
	for {
		cpus, memory = cpus-want.cpus, memory-want.memory
		if len(want.gres) > 0 {
			a -= want.gres[0].count
		}
		left := a
		if len(want.gres) > 0 && want.gres[0].kind == "" {
			left += b
		}
		if cpus < 0 || memory < 0 && want.memory > 0 || len(want.gres) > 0 && left < 0 {
			return n
		}
		n++
	}
}

// While a job of others waits for room, and Slurm has not said when it is to begin, hosts of its partitions are not shown as free: for a
// minute at most, and for each job once.
func TestWhatIsGivenBackIsNotAskedForAgain(t *testing.T) {
	now := time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
	s := &Slurm{o: Options{Mark: "aaaa1111", Pool: "pool", Partition: "preempt"}}
	hosts := []host{{name: "n0", partitions: []string{"preempt", "normal"}}, {name: "n1", partitions: []string{"preempt"}}}
	waits := row{id: "7", state: "PENDING", reason: "Resources", partitions: []string{"gpu", "normal"}}
	with := func(change func(*row)) row { r := waits; change(&r); return r }
	for _, c := range []struct {
		name  string
		after time.Duration
		rows  []row
		until time.Duration // from the first; 0: nothing is taken
	}{
		{name: "nobody", until: 0},
		{name: "it waits its turn", rows: []row{with(func(r *row) { r.reason = "Priority" })}},
		{name: "it has a start", rows: []row{with(func(r *row) { r.start = now.Add(time.Hour) })}},
		{name: "new", rows: []row{waits}, until: time.Minute},
		{name: "a while later", after: 30 * time.Second, rows: []row{waits}, until: time.Minute},
		{name: "another beside it", after: 50 * time.Second, rows: []row{waits, with(func(r *row) { r.id = "8" })},
			until: 110 * time.Second},
		{name: "for long", after: time.Minute, rows: []row{waits}},
		{name: "and still", after: time.Hour, rows: []row{waits}},
		{name: "anew", after: 2 * time.Hour, rows: nil},
		{name: "as another job of its number", after: 3 * time.Hour, rows: []row{waits}, until: 3*time.Hour + time.Minute},
		{name: "elsewhere", after: 4 * time.Hour, rows: []row{with(func(r *row) { r.id, r.partitions = "9", []string{"gpu"} })}},
	} {
		until := time.Duration(0)
		s.waits(now.Add(c.after), c.rows)
		for _, b := range s.unplanned(now.Add(c.after), c.rows, hosts) {
			if b.hosts["n1"] || !b.start.Equal(now.Add(c.after)) {
				t.Errorf("%s: %+v", c.name, b)
			}
			if b.hosts["n0"] {
				until = max(until, b.end.Sub(now))
			}
		}
		if until != c.until {
			t.Errorf("%s: taken until %v, want %v", c.name, until, c.until)
		}
	}
}

// A pilot on whose node a job of others is to begin now, and does not, is given back, and stays so; no other is.
func TestWhomSlurmDoesNotServe(t *testing.T) {
	now := time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
	waits := row{id: "7", state: "PENDING", reason: "Resources", start: now, meant: []string{"n0", "n1"}}
	with := func(change func(*row)) row { r := waits; change(&r); return r }
	type step struct {
		after   time.Duration
		waiting []row
		marked  string
	}
	for _, c := range []struct {
		name  string
		steps []step
	}{
		{"expected for long", []step{{0, []row{waits}, ""}, {9 * time.Second, []row{waits}, ""}, {10 * time.Second, []row{waits}, "a"},
			{11 * time.Second, nil, "a"}, {12 * time.Second, []row{with(func(r *row) { r.meant = []string{"n2"} })}, "a"}}},
		{"on other nodes by then", []step{{0, []row{waits}, ""},
			{20 * time.Second, []row{with(func(r *row) { r.meant = []string{"n2"} })}, "b"}}},
		{"expected later", []step{{0, []row{with(func(r *row) { r.start = now.Add(time.Hour) })}, ""},
			{time.Minute, []row{with(func(r *row) { r.start = now.Add(time.Hour) })}, ""}}},
		{"a while apart", []step{{0, []row{waits}, ""}, {5 * time.Second, nil, ""}, {12 * time.Second, []row{waits}, ""}}},
		{"it waits its turn", []step{{0, []row{with(func(r *row) { r.reason = "Priority" })}, ""},
			{time.Minute, []row{with(func(r *row) { r.reason = "Priority" })}, ""}}},
		{"nobody says where", []step{{0, []row{with(func(r *row) { r.meant = nil })}, ""}, {time.Minute,
			[]row{with(func(r *row) { r.meant = nil })}, ""}}},
	} {
		s := &Slurm{o: Options{Mark: "aaaa1111", Pool: "pool"}}
		rows := []row{{id: "1", hosts: []string{"n0"}}, {id: "2", hosts: []string{"n2"}}, {id: "3"}}
		for _, x := range c.steps {
			seen := []provider.Seen{{Name: "a", ID: "1", State: provider.Running, Began: now}, {Name: "b", ID: "2", State: provider.Running,
				Began: now}, {Name: "c", ID: "3", State: provider.Waiting}}
			s.waits(now.Add(x.after), x.waiting)
			s.wanted(now.Add(x.after), seen, rows, x.waiting)
			marked := ""
			for _, p := range seen {
				if p.Preempted {
					marked += p.Name
				}
			}
			if marked != x.marked {
				t.Errorf("%s: after %v %q are given back, want %q", c.name, x.after, marked, x.marked)
			}
		}
	}
}

const nodeLine = `NodeName=n0 Arch=x86_64 CoresPerSocket=1  CPUAlloc=1 CPUEfctv=4 CPUTot=4 CPULoad=1.01 AvailableFeatures=mig,a100 ` +
	`ActiveFeatures=mig,a100 Gres=gpu:1g.10gb:7(S:0-1),gpu:a100:2 GresDrain=N/A GresUsed=gpu:1g.10gb:2(IDX:0-1),gpu:a100:0(IDX:N/A) ` +
	`NodeAddr=127.0.0.1 NodeHostName=vm Port=26801 Version=22.05.8 OS=Linux 6.1.0 #1 SMP PREEMPT_DYNAMIC @0  RealMemory=1000 ` +
	`AllocMem=100 FreeMem=22206 Sockets=4 Boards=1 MemSpecLimit=100 State=MIXED ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A ` +
	`MCS_label=N/A Partitions=normal,preempt  BootTime=2026-11-30T07:53:19 SlurmdStartTime=2026-11-30T08:07:13 ` +
	`CfgTRES=cpu=4,mem=1000M,billing=4 AllocTRES=cpu=4,mem=1000M CapWatts=n/a Comment=State=DOWN Partitions=none` + " \n"

func TestWhatANodeHas(t *testing.T) {
	for _, c := range []struct {
		name, from, to string
		o              Options
		fits           int
		none           bool
	}{
		{name: "by devices", o: Options{Gres: "gpu:1g.10gb:2"}, fits: 2},
		{name: "by processors", o: Options{Gres: "gpu:1g.10gb:1"}, fits: 3},
		{name: "by memory", o: Options{Gres: "gpu:1g.10gb", Memory: 300 << 20}, fits: 2},
		{name: "any device", o: Options{Gres: "gpu:7"}, fits: 1},
		{name: "another device", o: Options{Gres: "gpu:h100:1"}},
		{name: "no device", o: Options{CPUs: 2}, fits: 1},
		{name: "of another partition", from: "normal,preempt", to: "normal", none: true},
		{name: "with features", o: Options{Constraint: "a100&mig"}, fits: 3},
		{name: "without a feature", o: Options{Constraint: "a100&nvlink"}},
		{name: "drained", from: "State=MIXED", to: "State=MIXED+DRAIN"},
		{name: "not heard", from: "State=MIXED", to: "State=DOWN*"},
		{name: "silent", from: "State=MIXED", to: "State=IDLE*"},
		{name: "completing", from: "State=MIXED", to: "State=MIXED+COMPLETING"},
		{name: "unlike its configuration", from: "State=MIXED", to: "State=IDLE+INVALID_REG"},
		{name: "about to sleep", from: "State=MIXED", to: "State=MIXED+POWER_DRAIN"},
		{name: "planned", from: "State=MIXED", to: "State=IDLE+PLANNED", fits: 3},
		{name: "asleep", from: "State=MIXED", to: "State=IDLE+CLOUD+POWERED_DOWN", fits: 3},
		{name: "reserved", from: "State=MIXED", to: "State=RESERVED", fits: 3}, // its reservation says from when to when
	} {
		c.o.Partition = "preempt"
		list, err := records(strings.Replace(nodeLine, c.from, c.to, 1), "NodeName", "No nodes in the system")
		if err != nil {
			t.Fatal(err)
		}
		hosts, none, err := c.o.hosts(list)
		fits := 0
		for i := range hosts {
			fits += hosts[i].free.fits(c.o.want())
		}
		if err != nil || none != c.none || fits != c.fits {
			t.Errorf("%s: room for %d, none: %t, %v: want %d", c.name, fits, none, err, c.fits)
		}
	}
}
