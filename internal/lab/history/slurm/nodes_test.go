package slurm

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/history"
)

// TestNodes: what sinfo, scontrol and sacctmgr say of nodes, in their usual forms.
func TestNodes(t *testing.T) {
	jobs := title + row("1", 1, 2) + row("2", 40, 41)
	scontrol := `NodeName=n1 Arch=x86_64 CoresPerSocket=4
   CPUAlloc=0 CPUEfctv=8 CPUTot=8 CPULoad=0.10
   Gres=gpu:1g.10gb:7(S:0),gpu:a100:1(S:0-1)
   State=IDLE+DRAIN ThreadsPerCore=1 TmpDisk=0 Weight=1
   Partitions=p,low
   Reason=not responding, ask ada [root@2026-11-28T00:10:00]

NodeName=n2 Arch=x86_64
   Gres=(null)
   State=DOWN*
`
	for name, c := range map[string]struct {
		file string
		// nodes with their devices, partitions and absences
		want string
		odd  map[string]int64
	}{
		"scontrol show node": {
			file: scontrol, odd: map[string]int64{downSince: 1},
			want: "n1 7x1g.10gb 1xa100 [low p] drained 600-\nn2 [] down 120-",
		},
		"scontrol show node -o": {
			file: strings.ReplaceAll(strings.ReplaceAll(scontrol, "\n   ", " "), "\n\n", "\n"), odd: map[string]int64{downSince: 1},
			want: "n1 7x1g.10gb 1xa100 [low p] drained 600-\nn2 [] down 120-",
		},
		"scontrol show node of one in maintenance, with brackets in the reason": {
			file: "NodeName=n1 Gres=gpu:2 State=IDLE+MAINTENANCE+RESERVED Reason=gpu[3] of ops@site [root@2026-11-28T00:10:00]\n",
			want: "n1 2xgpu [] down 600-",
		},
		"sinfo -N -o": {
			file: "NODELIST GRES PARTITION STATE\nn1 gpu:a100:2(S:0) p* idle\nn1 gpu:a100:2(S:0) low idle\nn2 (null) p mix\n",
			want: "n1 2xa100 [low p]\nn2 [p]",
		},
		"sinfo with a delimiter": {
			file: "NODELIST|GRES|STATE\nn[1-2]|gpu:2|down~\n", odd: map[string]int64{downSince: 2},
			want: "n1 2xgpu [] down 2460-\nn2 2xgpu [] down 120-",
		},
		"sinfo": {
			file: "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\np*           up   infinite      1   drng n1\nq            up   " +
				"infinite      0    n/a \n",
			want: "n1 1xa100 [p] drained 2460-", odd: map[string]int64{downSince: 1, badTable: 1},
		},
		"sinfo -R": {
			file: "REASON               USER      TIMESTAMP           NODELIST\nnot responding       root      2026-11-28T00:20:00 n1\n",
			want: "n1 1xa100 [] drained 1200-",
		},
		"reservations": {
			file: "ReservationName=r1 StartTime=2026-11-28T00:05:00 EndTime=2026-11-28T00:06:00 Duration=00:01:00 Nodes=n[1,3] " +
				"NodeCnt=2 Flags=MAINT\n" +
				"ReservationName=r2 StartTime=2026-11-28T00:15:00\n   EndTime=2026-11-28T00:16:00\n   Nodes=ALL Flags=MAINT\n" +
				"ReservationName=r3 StartTime=2026-11-28T00:15:00 EndTime=2026-11-28T00:16:00 Nodes=(null)\nReservationName=r4 " +
				"StartTime=x\n",
			want: "n1 1xa100 [] reserved 300-360 reserved 900-960",
			odd:  map[string]int64{badRecord: 1, "an absence of a node that nothing else names": 1},
		},
		"sacctmgr show event": {
			file: "Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User\nc||2026-11-01T00:00:00|Unknown|||\n" +
				"c|n1|2026-11-28T00:03:00|2026-11-28T00:04:00|DOWN*|Not responding|slurm(64030)\nc|n1|2026-11-28T00:08:00|Unknown|" +
				"DRAIN|x|root(0)\nc|n1|x|y|DOWN|z|\n",
			want: "n1 1xa100 [] down 180-240 drained 480-", odd: map[string]int64{badTable: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if !Format().Is([]byte(c.file), "x") {
				t.Error("not found out")
			}
			for _, order := range [][]string{{jobs, c.file}, {c.file, jobs}, {jobs + c.file}, {c.file + jobs}} {
				h := must(t, history.Options{Zone: time.UTC}, order...)
				var lines []string
				for _, n := range h.Nodes {
					line := n.Name
					devices := map[string]int{}
					for _, d := range h.Devices[n.First : n.First+n.Count] {
						devices[h.Kinds[d.Kind].Name]++
					}
					for _, k := range h.Kinds {
						if devices[k.Name] > 0 {
							line += fmt.Sprintf(" %dx%s", devices[k.Name], k.Name)
						}
					}
					line += fmt.Sprintf(" %v", n.Partitions)
					for _, a := range n.Away {
						to := ""
						if a.To != quantity.Never {
							to = fmt.Sprint((a.To - hour()) / second)
						}
						line += fmt.Sprintf(" %v %d-%s", a.Why, (a.From-hour())/second, to)
					}
					lines = append(lines, line)
				}
				if got := strings.Join(lines, "\n"); got != c.want {
					t.Errorf("got\n%s\nwant\n%s", got, c.want)
				}
				if c.odd == nil {
					c.odd = map[string]int64{}
				}
				if n := counts(h); !reflect.DeepEqual(n, c.odd) {
					t.Errorf("oddities %v, want %v", n, c.odd)
				}
			}
		})
	}
}

// TestHosts: lists of nodes.
func TestHosts(t *testing.T) {
	for list, want := range map[string]string{
		"n1": "n1", "n[1-3]": "n1 n2 n3", "n[08-10,2],m": "n08 n09 n10 n2 m", "r[1-2]n[1-2]x": "r1n1x r1n2x r2n1x r2n2x", "n[1": "",
		"n1]": "", "n[3-1]": "",
		"n[a]": "", "": "", ",": "", "a b": "", "n[[1]]": "", "n[1-99999999]": "", "n[0-60000],m[0-60000]": "",
	} {
		got, ok := Hosts([]byte(list))
		if !ok {
			got = nil
		}
		if s := strings.Join(got, " "); s != want || ok != (want != "") {
			t.Errorf("%s: %q %v, want %q", list, s, ok, want)
		}
	}
}

// TestLengths: lengths of time.
func TestLengths(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"01:00:00": time.Hour, "2-00:00:00": 48 * time.Hour, "UNLIMITED": 0, "": 0, "02:30": 150 * time.Second, "00:01.500": time.Second,
		"1-02": 26 * time.Hour, "1-02:03": 26*time.Hour + 3*time.Minute, "x": -1, "1:2:3:4": -1, "1:": -1, "-1:00": -1, "5": -1,
		"99999999999:00": -1,
	} {
		if got, ok := length([]byte(text)); ok != (want >= 0) || ok && got != want {
			t.Errorf("%q: %v %v, want %v", text, got, ok, want)
		}
	}
}

// TestMinutes: a limit in minutes, or as a length; what is too much is none.
func TestMinutes(t *testing.T) {
	for text, want := range map[string]time.Duration{"90": 90 * time.Minute, "01:00:00": time.Hour, "4294967295": -1, "307445735": -1} {
		if got, ok := minutes([]byte(text)); ok != (want >= 0) || ok && got != want {
			t.Errorf("%q: %v %v, want %v", text, got, ok, want)
		}
	}
}
