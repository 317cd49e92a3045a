package slurm

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestLengths(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"5:00": 5 * time.Minute, "1:29:56": time.Hour + 29*time.Minute + 56*time.Second,
		"1-02:02:59": 26*time.Hour + 2*time.Minute + 59*time.Second,
		"04:00:00":   4 * time.Hour, "365-00:00:00": 365 * 24 * time.Hour, "UNLIMITED": 0, "INVALID": 0, "0:00": 0,
	} {
		if got, err := parseLength(text); err != nil || got != want {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"5", "a:00", "1:2:3:4", "-1:00", "1-2", "99999999999:00", "2147483647-00:00:00", "1:00 "} {
		if got, err := parseLength(text); err == nil {
			t.Errorf("%q: %v, want an error", text, got)
		}
	}
}

func TestLists(t *testing.T) {
	for text, want := range map[string]string{
		"n0": "n0", "n[0-1]": "n0 n1", "n[01-03,7],gpu1": "n01 n02 n03 n7 gpu1",
		"r[0-1]n[2,4]": "r0n2 r0n4 r1n2 r1n4", "n[9-11]x": "n9x n10x n11x",
		"": "", "(null)": "",
	} {
		if got, err := parseHosts(text); err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: %v, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"n[", "n]", "n[1", "n[a-b]", "n[3-1]", "n[0-999999999]", ",", "n[[1]]", "n[0-1000][0-1000]", "a,,b"} {
		if got, err := parseHosts(text); err == nil {
			t.Errorf("%q: %d hosts, want an error", text, len(got))
		}
	}
	for text, want := range map[string][]gres{
		"gpu:1g.10gb:7(S:0),gpu:a100:2": {{"gpu", "1g.10gb", 7}, {"gpu", "a100", 2}}, "gres:gpu:2": {{"gpu", "", 2}},
		"gpu":                {{"gpu", "", 1}},
		"gres:gpu:1g.10gb:1": {{"gpu", "1g.10gb", 1}}, "gpu:a100": {{"gpu", "a100", 1}}, "gpu:1g.10gb:0(IDX:N/A)": {{"gpu", "1g.10gb", 0}},
		"gpu:2(IDX:0,3-4),bw:10G": {{"gpu", "", 2}, {"bw", "", 10 << 30}},
		"gres/gpu:a100:1":         {{"gpu", "a100", 1}}, "N/A": nil, "(null)": nil,
	} {
		if got, err := parseGres(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{":", ",", "gpu:a:b:1", "gpu:1,"} {
		if got, err := parseGres(text); err == nil {
			t.Errorf("%q: %v, want an error", text, got)
		}
	}
}

// sampleQueue is what a squeue of 22.05.8 has printed: one that ends by a preemption, one that waits, one with an odd name, one that was
// cancelled before it began, and those of an array.
var sampleQueue = strings.ReplaceAll(`
15#RUNNING#0#2026-11-30T08:07:54#2026-11-30T08:08:17#5:00#n0#(null)#1#100M#N/A#None#preempt#sluice.aaaa1111.pool.a#
18#PENDING#0#2026-11-30T08:07:59#2026-11-30T08:08:59#1:00##n[0-1]#2#0#N/A#Resources#normal#sbatch#
5#PENDING#0#2026-11-30T09:07:35#2026-11-30T09:12:35#5:00##(null)#2#0#N/A#BeginTime#normal,preempt#new
line#
1#CANCELLED#0#2026-11-30T08:07:40#2026-11-30T08:07:40#5:00##n0#1#100M#gres:gpu:1g.10gb:1#Resources#preempt#sluice.aaaa1111.pool.b#
9#PENDING#65534#N/A#N/A#10:00:00##(null)#1#0#N/A#PartitionConfig#normal#we|ird name#
20_[3-10%2]#PENDING#1000#N/A#N/A#UNLIMITED##(null)#1#1500M#N/A#ReqNodeNotAvail, Reserved for maintenance#normal#job.sh#
`[1:], "#", "|N0NCE|")

func TestSampleQueue(t *testing.T) {
	rows, err := parseQueue(sampleQueue, "|N0NCE|")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range rows {
		got = append(got, fmt.Sprint(r.id, " ", r.state, " ", r.user, " ", r.limit, " ", r.hosts, " ", r.meant,
			" ", r.cpus, " ", r.memory>>20, " ", r.gres, " ", r.reason, " ", r.partitions, " ", r.name))
	}
	want := []string{
		"15 RUNNING 0 5m0s [n0] [] 1 100 [] None [preempt] sluice.aaaa1111.pool.a",
		"18 PENDING 0 1m0s [] [n0 n1] 2 -1 [] Resources [normal] sbatch",
		"5 PENDING 0 5m0s [] [] 2 -1 [] BeginTime [normal preempt] new\nline",
		"1 CANCELLED 0 5m0s [] [n0] 1 100 [{gpu 1g.10gb 1}] Resources [preempt] sluice.aaaa1111.pool.b",
		"9 PENDING 65534 10h0m0s [] [] 1 -1 [] PartitionConfig [normal] we|ird name",
		"20_[3-10%2] PENDING 1000 0s [] [] 1 1500 [] ReqNodeNotAvail, Reserved for maintenance [normal] job.sh",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if end := time.Date(2026, 11, 30, 8, 8, 17, 0, time.UTC); !rows[0].end.Equal(end) || rows[0].end.Location() != time.UTC {
		t.Errorf("ends at %v, want %v, wherever this runs", rows[0].end, end)
	}
	for _, bad := range []string{sampleQueue[:len(sampleQueue)-9], sampleQueue[3:], strings.Replace(sampleQueue, "5:00", "soon", 1),
		strings.Replace(sampleQueue, "2026-11-30T08:08:17", "yesterday", 1),
		strings.Replace(sampleQueue, "RUNNING|N0NCE|0|", "RUNNING|N0NCE|root|", 1),
		sampleQueue + "slurm_load_jobs error: x", strings.Replace(sampleQueue, "\n18", "18", 1),
		strings.Replace(sampleQueue, "n[0-1]", "n[0-", 1)} {
		if rows, err := parseQueue(bad, "|N0NCE|"); err == nil {
			t.Errorf("%d jobs of an answer that is broken:\n%s", len(rows), bad)
		}
	}
}

// Whatever a queue holds, what is read of it are whole jobs, and no text between two separators makes another.
func FuzzQueue(f *testing.F) {
	f.Add(sampleQueue)
	f.Add("")
	f.Add("slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n")
	f.Fuzz(func(t *testing.T, text string) {
		const between = "|N0NCE|"
		rows, err := parseQueue(text, between)
		if err != nil && rows != nil {
			t.Error("an error and jobs")
		}
		if n := strings.Count(text, between); err == nil && n != len(rows)*len(queueFieldNames) {
			t.Errorf("%d jobs of %d fields", len(rows), n)
		}
		for _, r := range rows {
			if r.id == "" || strings.ContainsAny(r.id, " \n") || r.limit < 0 || r.cpus < 0 {
				t.Errorf("%+v is no job", r)
			}
		}
	})
}

const reservationLine = "ReservationName=root_1 StartTime=2026-11-30T08:37:35 EndTime=2026-11-30T08:47:35 Duration=00:10:00 Nodes=n[0-1] " +
	"NodeCnt=1 CoreCnt=4 Features=(null) PartitionName=(null) Flags=MAINT,SPEC_NODES TRES=cpu=4 Users=root Groups=(null) Accounts=(null) " +
	"Licenses=(null) State=INACTIVE BurstBuffer=(null) Watts=n/a MaxStartDelay=(null)\n"

// Whatever scontrol prints, gaps lie in the future, hold some pilots, and end after they begin.
func FuzzGaps(f *testing.F) {
	f.Add(nodeLine, reservationLine, sampleQueue)
	f.Add("No nodes in the system\n", "No reservations in the system\n", "")
	f.Add(nodeLine+strings.ReplaceAll(nodeLine, "n0", "n1"), reservationLine, sampleQueue)
	f.Fuzz(func(t *testing.T, nodes, reservations, queue string) {
		o := Options{Partition: "preempt", Gres: "gpu:1g.10gb:1"}
		now := time.Date(2026, 11, 30, 8, 8, 0, 0, time.UTC)
		rows, err := parseQueue(queue, "|N0NCE|")
		list, failed := records(nodes, "NodeName", "No nodes in the system")
		booked, unread := records(reservations, "ReservationName", "No reservations in the system")
		if err != nil || failed != nil || unread != nil {
			return
		}
		hosts, _, err := o.hosts(list)
		others, own, failed := o.bookings(booked)
		if err != nil || failed != nil || own != nil {
			return
		}
		s := Slurm{o: o}
		for _, g := range between(now, o.want(), hosts, others, nil, s.strangers(rows), rows) {
			if g.Count < 1 || g.Start.Before(now) || !g.End.IsZero() && !g.End.After(g.Start) {
				t.Errorf("%+v is no gap", g)
			}
		}
	})
}
