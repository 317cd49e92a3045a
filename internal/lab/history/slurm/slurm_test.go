package slurm

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/history"
)

const second = quantity.Instant(time.Second)

// hour is where the instants of these tests lie.
func hour() quantity.Instant { return quantity.At(time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)) }

func read(t fataler, o history.Options, files ...string) (*history.History, error) {
	t.Helper()
	b := history.NewBook(o)
	for i, f := range files {
		if err := Read(b, strings.NewReader(f), fmt.Sprintf("f%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	return b.Close()
}

type fataler interface {
	Helper()
	Fatal(...any)
}

func must(t fataler, o history.Options, files ...string) *history.History {
	t.Helper()
	h, err := read(t, o, files...)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// picture shows devices with their holds, in seconds since hour.
func picture(h *history.History) string {
	var out strings.Builder
	for i, holds := range h.Held {
		d := h.Devices[i]
		fmt.Fprintf(&out, "%s %s:", h.Nodes[d.Node].Name, h.Kinds[d.Kind].Name)
		for _, x := range holds {
			fmt.Fprintf(&out, " %s@%d-%d", h.Runs[x.Run].ID, (x.From-hour())/second, (x.To-hour())/second)
		}
		out.WriteString("\n")
	}
	return out.String()
}

func counts(h *history.History) map[string]int64 {
	out := map[string]int64{}
	for _, o := range h.Oddities {
		out[o.Name] = o.Count
	}
	return out
}

const title = "JobIDRaw|JobID|JobName|User|Account|Partition|QOS|State|Submit|Eligible|Start|End|Timelimit|AllocNodes|AllocTRES|ReqTRES|" +
	"NodeList|Suspended|DBIndex\n"

// row is one job on n1 with a GPU, over minutes of the hour; edits are pairs of a column's name and another value.
func row(id string, from, to int, edits ...string) string {
	at := func(minute int) string {
		if minute < 0 {
			return "Unknown"
		}
		return fmt.Sprintf("2026-11-28T00:%02d:00", minute)
	}
	columns := strings.Split(strings.TrimSpace(title), "|")
	values := []string{id, id, "train", "u1", "acc1", "p", "normal", "COMPLETED", at(from), at(from), at(from), at(to), "01:00:00", "1",
		"billing=1,cpu=1,gres/gpu:a100=1,gres/gpu=1,mem=100M,node=1", "billing=1,cpu=1,gres/gpu=1,mem=100M,node=1", "n1", "00:00:00", ""}
	for i := 0; i+1 < len(edits); i += 2 {
		values[slices.Index(columns, edits[i])] = edits[i+1]
	}
	return strings.Join(values, "|") + "\n"
}

// TestOddities: what sacct really prints, each row of which something is odd, and what becomes of it.
func TestOddities(t *testing.T) {
	// Two runs that nothing is wrong with bound the history to minutes 1 to 50.
	around := row("900", 0, 1, "NodeList", "z1") + row("901", 50, 55, "NodeList", "z1")
	for name, c := range map[string]struct {
		rows string
		// on n1 and further nodes; the two of z1 are left out.
		want string
		odd  map[string]int64
	}{
		"nothing": {rows: row("1", 2, 3), want: "n1 a100: 1@120-180"},
		"steps, but for the end of a script": {
			rows: row("1", 2, 40, "State", "REQUEUED") + row("1.batch", 2, 5, "Partition", "") + row("1.0", 2, 3) + row("1.extern", 2, 40),
			want: "n1 a100: 1@120-300",
			odd:  map[string]int64{"a requeued run whose end the requeue rewrote": 1},
		},
		"a requeue rewrites an end, and nothing tells the true one": {
			rows: row("4", 2, 10, "State", "REQUEUED") + row("4", 12, 14, "Submit", "2026-11-28T00:10:00"),
			want: "n1 a100: 4@120-600 4@720-840",
			odd:  map[string]int64{"a requeued run whose end may be that of the requeue": 1},
		},
		"a job id of two jobs, the first of which was lost": {
			rows: row("67", 2, -1, "State", "RUNNING", "DBIndex", "122") + row("67", 10, 12, "DBIndex", "127", "User", "u2"),
			want: "n1 a100: 67@120-600 67@600-720",
			odd:  map[string]int64{"a run without an end whose job id was given again": 1},
		},
		"a lost job whose id was given again, with the script of the next one": {
			rows: row("67", 2, -1, "State", "RUNNING", "DBIndex", "122") + row("67.batch", 2, -1) +
				row("67", 10, 40, "DBIndex", "127", "Submit", "2026-11-28T00:10:00") + row("67.batch", 10, 40),
			want: "n1 a100: 67@120-600 67@600-2400",
			odd:  map[string]int64{"a run without an end whose job id was given again": 1},
		},
		"a limit that was raised between two dumps": {
			rows: row("5", 2, -1, "State", "RUNNING", "Timelimit", "00:05:00") +
				row("5", 2, -1, "State", "RUNNING", "Timelimit", "02:00:00"),
			want: "n1 a100: 5@120-420",
			odd:  map[string]int64{"a run that two dumps have as it ran": 1, "a run without an end that is past its walltime": 1},
		},
		"a lost job past its walltime": {
			rows: row("68", 2, -1, "State", "RUNNING", "Timelimit", "00:05:00"), want: "n1 a100: 68@120-420",
			odd: map[string]int64{"a run without an end that is past its walltime": 1},
		},
		"running": {rows: row("1", 2, -1, "State", "RUNNING"), want: "n1 a100: 1@120-3000"},
		"completed without an end": {
			rows: row("71", 2, -1) + row("71.batch", 2, 6), want: "n1 a100: 71@120-360",
			odd: map[string]int64{"a run that is over and has no end": 1},
		},
		"half filled": {
			rows: row("67", 2, -1, "State", "PENDING", "JobName", "allocation"), want: "n1 a100: 67@120-3000",
		},
		"never ran": {
			rows: row("31", 2, 2, "State", "CANCELLED", "AllocNodes", "0", "NodeList", "None assigned", "AllocTRES", "") +
				row("35", 2, 5, "State", "DEADLINE", "Start", "None", "AllocNodes", "0", "NodeList", "None assigned", "AllocTRES", "") +
				row("84", 3, 3, "State", "CANCELLED by 65534", "Eligible", "Unknown", "AllocNodes", "0", "NodeList", "None assigned",
					"AllocTRES", ""),
			odd: map[string]int64{neverRan: 2},
		},
		"waiting": {
			rows: row("26", 2, -1, "State", "PENDING", "Start", "Unknown", "Eligible", "Unknown", "AllocNodes", "0", "NodeList",
				"None assigned",
				"AllocTRES", "") +
				row("76", 2, -1, "JobID", "76_[1,3,7-20%2]", "State", "PENDING", "Start", "Unknown", "AllocNodes", "0", "NodeList",
					"None assigned", "AllocTRES", "") +
				// left over of a run before
				row("77", 2, -1, "State", "PENDING", "Start", "Unknown", "AllocNodes", "1", "NodeList", "None assigned", "AllocTRES", ""),
		},
		"arrays and jobs of several parts": {
			rows: row("50", 2, 4, "JobID", "18_3") + row("18", 5, 6, "JobID", "18_5") + row("41", 7, 8, "JobID", "41+0") +
				row("42", 7, 8, "JobID", "41+1", "NodeList", "n2"),
			want: "n1 a100: 18_3@120-240 18_5@300-360 41+0@420-480\nn2 a100: 41+1@420-480",
		},
		"suspended": {
			rows: row("69", 2, 8, "Suspended", "00:04:28"), want: "n1 a100: 69@120-480", odd: map[string]int64{suspended: 1},
		},
		"cancelled by a uid, and states that a column cut off": {
			rows: row("1", 2, 3, "State", "CANCELLED by 65534") + row("2", 4, 5, "State", "CANCELLED+") + row("3", 6, 7, "State",
				"OUT_OF_ME+"),
			want: "n1 a100: 1@120-180 2@240-300 3@360-420",
		},
		"a state of a later version": {
			rows: row("1", 2, 3, "State", "EXPEDITING"), want: "n1 a100: 1@120-180", odd: map[string]int64{badState: 1},
		},
		"typed and total are one": {
			rows: row("1", 2, 3, "AllocTRES", "cpu=1,gres/gpu:1g.10gb=2,gres/gpu=3,node=1"),
			want: "n1 1g.10gb: 1@120-180\nn1 1g.10gb: 1@120-180\nn1 gpu: 1@120-180",
		},
		"shares": {
			rows: row("1", 2, 3, "AllocTRES", "cpu=1,gres/shard=3") + row("2", 4, 5, "AllocTRES", "gres/gpu=1,gres/mps=100"),
			want: "n1 gpu: 2@240-300", odd: map[string]int64{shares: 2, "a run without a device": 1},
		},
		"no GPU": {
			rows: row("1", 2, 3, "AllocTRES", "cpu=1,node=1", "ReqTRES", "cpu=1,gres/gpu=7"),
			odd:  map[string]int64{"a run without a device": 1},
		},
		"several nodes": {
			rows: row("75", 2, 3, "NodeList", "n[1-2],m007", "AllocNodes", "3", "AllocTRES", "gres/gpu=6"),
			want: "m007 gpu: 75@120-180\nm007 gpu: 75@120-180\nn1 gpu: 75@120-180\nn1 gpu: 75@120-180\nn2 gpu: 75@120-180\nn2 gpu: " +
				"75@120-180",
		},
		"names with delimiters and line feeds": {
			rows: row("19", 2, 3, "JobName", "a|b `c` 'd' é ü, x\\y") + row("20", 4, 5, "JobName", "two\nlines\ttab") +
				row("21", 6, 7, "JobName", "three\nlines\nof it"),
			want: "n1 a100: 19@120-180 20@240-300 21@360-420", odd: map[string]int64{inName: 1, feedInName: 2},
		},
		"hidden users": {rows: row("1", 2, 3, "User", ""), want: "n1 a100: 1@120-180", odd: map[string]int64{noUser: 1}},
		"rows of the same run": {
			rows: row("1", 2, 3) + row("1", 2, 3), want: "n1 a100: 1@120-180", odd: map[string]int64{"the same row more than once": 1},
		},
		"a restart makes a run fail that was over": {
			rows: row("66", 2, 3, "DBIndex", "5") + row("66", 2, 7, "State", "NODE_FAIL", "DBIndex", "5"),
			want: "n1 a100: 66@120-180", odd: map[string]int64{"a run that two rows tell differently": 1},
		},
		"the header again": {rows: title + row("1", 2, 3), want: "n1 a100: 1@120-180"},
		"what can't be read": {
			rows: "sacct: error: Problem talking to the database\n" + row("1", 2, 3, "Start", "soon") + row("x", 2, 3) +
				row("2", 4, 5, "NodeList", "n[1") + row("3", 6, 7, "AllocTRES", "lots", "ReqTRES", "gres/gpu=1") + row("4", 8, 9,
				"Timelimit", "long") +
				row("5", 10, 11, "Start", "2026-13-01T00:00:00"),
			odd: map[string]int64{fewFields: 1, badTime: 2, badID: 1, badNodes: 1, badDevices: 1, badLength: 1},
			// 2 has no node: the first that is free.
			want: "n1 a100: 2@240-300 4@480-540\nn1 gpu: 3@360-420",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := must(t, history.Options{Zone: time.UTC}, title+around+c.rows)
			var want strings.Builder
			for l := range strings.Lines(c.want) {
				want.WriteString(strings.TrimSpace(l) + "\n")
			}
			got := ""
			for l := range strings.Lines(picture(h)) {
				if !strings.HasPrefix(l, "z1") {
					got += l
				}
			}
			if got != want.String() {
				t.Errorf("got\n%swant\n%s", got, want.String())
			}
			if c.odd == nil {
				c.odd = map[string]int64{}
			}
			if n := counts(h); !reflect.DeepEqual(n, c.odd) {
				t.Errorf("oddities %v, want %v", n, c.odd)
			}
		})
	}
}

// TestDresses: the same rows as -P, as -p, with every delimiter that works, in columns of a fixed width, in another order of columns, with
// carriage returns, compressed, and with instants in every form.
func TestDresses(t *testing.T) {
	rows := [][]string{
		{"JobIDRaw", "State", "Start", "End", "AllocTRES", "NodeList"},
		{"1", "COMPLETED", "2026-11-28T00:01:00", "2026-11-28T00:02:00", "gres/gpu=1", "n1"},
		{"2", "RUNNING", "2026-11-28T00:03:00", "Unknown", "gres/gpu=2", "n[1-2]"},
		{"3", "COMPLETED", "2026-11-28T00:04:00", "2026-11-28T00:05:00", "gres/gpu=1", "n2"},
	}
	text := func(end string, line func([]string) string) string {
		var out strings.Builder
		for _, r := range rows {
			out.WriteString(line(r) + end)
		}
		return out.String()
	}
	join := func(d string) func([]string) string { return func(r []string) string { return strings.Join(r, d) } }
	wide := func(widths ...int) string {
		var out strings.Builder
		for i, r := range rows {
			for k, w := range widths {
				fmt.Fprintf(&out, "%*s ", w, r[k])
			}
			out.WriteString("\n")
			for k := 0; i == 0 && k < len(widths); k++ {
				out.WriteString(strings.Repeat("-", widths[k]) + " ")
			}
			if i == 0 {
				out.WriteString("\n")
			}
		}
		return out.String()
	}
	want := must(t, history.Options{}, text("\n", join("|")))
	if picture(want) != "n1 gpu: 2@180-240\nn1 gpu: 1@60-120\n" && len(want.Runs) != 3 {
		t.Fatal(picture(want))
	}
	zipped := func(s string) string {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		_, _ = io.WriteString(w, s)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	quoted := func(r []string) string { return `"` + strings.Join(r, `","`) + `"` }
	plain := text("\n", join("|"))
	for name, s := range map[string]string{
		"-p": text("|\n", join("|")), "\\x1f": text("\n", join("\x1f")), "tabs": text("\n", join("\t")), "semicolons": text("\n",
			join(";")),
		"quotes": text("\n", quoted), "a fixed width": wide(12, 10, 19, 19, 12, 15), "carriage returns": text("\r\n", join("|")),
		"no last line end": strings.TrimSuffix(plain, "\n"), "gzip": zipped(plain), "empty lines": strings.ReplaceAll(plain, "\n", "\n\n"),
		"another order": text("\n", func(r []string) string { return strings.Join([]string{r[5], r[4], r[0], r[2], r[1], r[3]}, "|") }),
		"offsets": strings.NewReplacer("00:01:00", "01:01:00+0100", "00:02:00", "00:02:00Z", "00:04:00",
			"00:04:00+00:00").Replace(plain),
		"seconds": strings.NewReplacer("2026-11-28T00:01:00", "1795824060", "2026-11-28T00:04:00", "1795824240").Replace(plain),
		"lower case": strings.Replace(plain, "JobIDRaw|State|Start|End|AllocTRES|NodeList",
			"jobidraw|state|start|end|alloctres|nodelist", 1),
	} {
		if !Format().Is([]byte(s), "x") && name != "gzip" {
			t.Errorf("%s: not found out", name)
		}
		got := must(t, history.Options{}, s)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got\n%s%+v\nwant\n%s%+v", name, picture(got), got, picture(want), want)
		}
	}
	for _, s := range []string{"", "a,b,c\n1,2,3\n", "; Version: 2\n1 0 1\n", "PK\x03\x04", `{"jobs": []}`} {
		if Format().Is([]byte(s), "x") {
			t.Errorf("%q is taken for Slurm's", s)
		}
	}
}

// TestColumns: any subset of columns; what is missing is said, with what it costs; without times there is no history.
func TestColumns(t *testing.T) {
	h := must(t, history.Options{}, "JobID|Start|Elapsed|AllocGRES\n1|2026-11-28T00:01:00|00:01:00|gpu:2\n2|2026-11-28T00:03:00|"+
		"00:01:00|gpu:a100:1\n")
	got := counts(h)
	for _, c := range []string{"Submit", "State", "Timelimit", "NodeList", "DBIndex", "Suspended"} {
		if got["rows without the column "+c] != 2 {
			t.Errorf("%s: %v", c, got)
		}
	}
	if len(h.Assumptions) != 3 {
		t.Errorf("%q", h.Assumptions)
	}
	_, err := read(t, history.Options{}, "JobID|State|AllocTRES\n1|COMPLETED|gres/gpu=1\n")
	if errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), "no columns Start and End") {
		t.Error(err)
	}
	_, err = read(t, history.Options{}, "JobID|Cluster|Start|End|AllocTRES\n1|a|2026-11-28T00:01:00|2026-11-28T00:02:00|gres/gpu=1\n"+
		"1|b|2026-11-28T00:01:00|2026-11-28T00:02:00|gres/gpu=1\n")
	if err == nil || !strings.Contains(err.Error(), "clusters a and b") {
		t.Error(err)
	}
	_, err = read(t, history.Options{}, "JobID|Cluster|Start|End|AllocTRES\n1|b|2026-11-28T00:01:00|2026-11-28T00:02:00|gres/gpu=1\n",
		"JobID|Cluster|Start|End|AllocTRES\n1|a|2026-11-28T00:01:00|2026-11-28T00:02:00|gres/gpu=1\n")
	if err == nil || !strings.Contains(err.Error(), "clusters a and b") {
		t.Error(err)
	}
	h = must(t, history.Options{}, "JobID|Start|Elapsed|AllocTRES|AllocGRES|ReqGRES\n1|2026-11-28T00:01:00|00:01:00|cpu=1,node=1|gpu:2|\n"+
		"2|2026-11-28T00:03:00|00:01:00|cpu=1||gpu:1\n")
	if len(h.Devices) != 2 || len(h.Held[0]) != 1 {
		t.Errorf("what is in AllocGRES alone counts, and what was only asked for does not: %s", picture(h))
	}
	_, err = read(t, history.Options{}, "JobID|Start|End\n1|2026-11-28T00:01:00|2026-11-28T00:02:00\n")
	if err == nil || !strings.Contains(err.Error(), "no devices") {
		t.Error(err)
	}
}

// TestZones: a dump of another zone is the same history, also where clocks are put forward; where they are put back the elapsed time tells.
func TestZones(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip("no table of zones: ", err)
	}
	const layout = "2006-01-02T15:04:05"
	dump := func(zone *time.Location, times ...time.Time) string {
		out := "JobID|State|Start|End|Elapsed|Suspended|AllocTRES|NodeList\n"
		for i := 0; i+1 < len(times); i += 2 {
			out += fmt.Sprintf("%d|COMPLETED|%s|%s|%s|00:00:00|gres/gpu=1|n1\n", i, times[i].In(zone).Format(layout),
				times[i+1].In(zone).Format(layout), clockLength(times[i+1].Sub(times[i])))
		}
		return out
	}
	day := time.Date(2026, 3, 29, 0, 0, 0, 0, time.UTC) // forward at 1:00 UTC
	times := []time.Time{day, day.Add(30 * time.Minute), day.Add(40 * time.Minute), day.Add(100 * time.Minute), day.Add(3 * time.Hour),
		day.Add(30 * time.Hour)}
	want := must(t, history.Options{Zone: time.UTC}, dump(time.UTC, times...))
	got := must(t, history.Options{Zone: berlin}, dump(berlin, times...))
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	day = time.Date(2026, 10, 25, 0, 0, 0, 0, time.UTC) // back at 1:00 UTC
	times = []time.Time{day.Add(-time.Hour), day.Add(-30 * time.Minute), day.Add(-10 * time.Minute), day.Add(75 * time.Minute),
		day.Add(3 * time.Hour), day.Add(4 * time.Hour), day.Add(10 * time.Minute), day.Add(5*time.Hour + 10*time.Minute),
		day.Add(70 * time.Minute), day.Add(6*time.Hour + 10*time.Minute)}
	want = must(t, history.Options{Zone: time.UTC}, dump(time.UTC, times...))
	got = must(t, history.Options{Zone: berlin}, dump(berlin, times...))
	for i := range want.Runs { // the last two begin within the hour that there is twice
		if got.Runs[i].Start != want.Runs[i].Start || got.Runs[i].End != want.Runs[i].End {
			t.Errorf("run %d: got %v to %v, want %v to %v", i, got.Runs[i].Start.Time(), got.Runs[i].End.Time(), want.Runs[i].Start.Time(),
				want.Runs[i].End.Time())
		}
	}
}

// clockLength is how Slurm prints a length of time.
func clockLength(d time.Duration) string {
	s := int64(d / time.Second)
	if s >= 24*3600 {
		return fmt.Sprintf("%d-%02d:%02d:%02d", s/86400, s/3600%24, s/60%60, s%60)
	}
	return fmt.Sprintf("%02d:%02d:%02d", s/3600, s/60%60, s%60)
}

// TestRowsInAnyOrder: any order of rows, any split into files, another zone: the same history.
func TestRowsInAnyOrder(t *testing.T) {
	kolkata := time.FixedZone("Asia/Kolkata", 5*3600+1800)
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
			from := rapid.IntRange(0, 40).Draw(t, "from")
			return row(fmt.Sprint(rapid.IntRange(1, 9).Draw(t, "id")), from, rapid.SampledFrom([]int{-1, from, from + 3, from +
				9}).Draw(t, "to"),
				"State", rapid.SampledFrom([]string{"COMPLETED", "RUNNING", "REQUEUED", "PENDING", "CANCELLED by 0", "odd"}).Draw(t,
					"state"),
				"NodeList", rapid.SampledFrom([]string{"n1", "n[1-2]", "n2", "None assigned", "n["}).Draw(t, "nodes"),
				"AllocTRES", rapid.SampledFrom([]string{"", "gres/gpu=1", "gres/gpu:a100=2,gres/gpu=2", "cpu=1", "x"}).Draw(t, "tres"),
				"User", rapid.SampledFrom([]string{"u1", "u2", ""}).Draw(t, "user"),
				"DBIndex", rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "index"))
		}), 1, 20).Draw(t, "rows")
		history1 := func(zone *time.Location, files ...string) *history.History {
			h, err := read(t, history.Options{Zone: zone}, files...)
			if err != nil {
				return &history.History{Assumptions: []string{err.Error()}}
			}
			for i := range h.Oddities { // they name lines of files
				h.Oddities[i].Places = nil
			}
			return h
		}
		want := history1(time.UTC, title+strings.Join(rows, ""))
		moved := rapid.Permutation(rows).Draw(t, "order")
		at := rapid.IntRange(0, len(rows)).Draw(t, "split")
		inKolkata := strings.NewReplacer("2026-11-28T00:", "2026-11-28T05:")
		files := []string{title + strings.Join(moved[:at], ""), title + strings.Join(moved[at:], "")}
		for i, f := range files { // half past: minutes move too
			files[i] = halfPast(inKolkata.Replace(f))
		}
		if got := history1(kolkata, files...); !reflect.DeepEqual(got, want) {
			t.Fatalf("got\n%s%+v\nwant\n%s%+v", picture(got), got, picture(want), want)
		}
	})
}

// halfPast moves instants of the hour 5 by thirty minutes.
func halfPast(s string) string {
	const mark = "2026-11-28T05:"
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(s, mark)
		out.WriteString(before)
		if !found {
			return out.String()
		}
		minute := int(rest[0]-'0')*10 + int(rest[1]-'0') + 30
		fmt.Fprintf(&out, "2026-11-28T%02d:%02d", 5+minute/60, minute%60)
		s = rest[2:]
	}
}

// TestCutFiles: what stands before a cut counts, and a file that can't be read is no history.
func TestCutFiles(t *testing.T) {
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	text := title + row("1", 1, 2) + row("2", 5, 6)
	_, _ = io.WriteString(w, text)
	_ = w.Flush()
	_, _ = io.WriteString(w, row("3", 8, 9))
	_ = w.Close()
	h := must(t, history.Options{Zone: time.UTC}, zipped.String()[:zipped.Len()-20])
	if picture(h) != "n1 a100: 1@60-120 2@300-360\n" || counts(h)["a file that is cut or damaged"] != 1 {
		t.Errorf("%s%+v", picture(h), h.Oddities)
	}
	err := Read(history.NewBook(history.Options{}), iotest.ErrReader(errors.New("gone")), "x")
	if errkind.Of(err) != errkind.Unavailable || !strings.Contains(err.Error(), "x:1: read: gone") {
		t.Error(err)
	}
}

// TestHelp: the commands name the fields, which are those that are read.
func TestHelp(t *testing.T) {
	now := time.Date(2026, 11, 28, 1, 2, 3, 0, time.UTC)
	text := Help(now)
	for _, want := range []string{"sacct -a -D -P", "-S 2026-10-28 -E 2026-11-28", "--helpformat", "JobIDRaw,JobID,User",
		`--delimiter=$'\x1f'`, "DBIndex"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing in\n%s", want, text)
		}
	}
	if h := header([]byte(strings.Join(Fields(), "\x1f"))); h == nil || h.width != len(Fields()) || !h.has(colDBIndex) {
		t.Error("the dump that the help asks for is not read")
	}
}

// TestARealDump reads a dump of a cluster of Slurm 22.05, where it is there. It has hardly a GPU.
func TestARealDump(t *testing.T) {
	name := cmp.Or(os.Getenv("SLUICE_SACCT"), above("shared/examples/slurm/sacct-sample.txt"))
	if name == "" {
		t.Skip("no folder above has shared/examples/slurm/sacct-sample.txt, and SLUICE_SACCT is not set")
	}
	content, err := os.ReadFile(name)
	if err != nil {
		t.Skip(err)
	}
	h := must(t, history.Options{Zone: time.UTC}, string(content))
	n := counts(h)
	if len(h.Runs) == 0 || n["a run without a device"] < 30 || n[badTime]+n[badID]+n[manyFields]+n[fewFields] != 0 || n[feedInName] != 1 ||
		n[inName] != 2 {
		t.Errorf("%d runs, %+v\n%s", len(h.Runs), h.Oddities, picture(h))
	}
	// The same of the CPUs: each as if it were a GPU.
	h = must(t, history.Options{Zone: time.UTC}, strings.ReplaceAll(strings.ReplaceAll(string(content), "gres/gpu:1g.10gb=", "x="),
		"cpu=", "gres/gpu="))
	n = counts(h)
	if n["a run without an end whose job id was given again"] != 1 || n["a requeued run whose end may be that of the requeue"] != 3 ||
		n[neverRan] != 3 {
		t.Errorf("%d runs, %+v\n%s", len(h.Runs), h.Oddities, picture(h))
	}
}

// above finds a file in a folder above the test's.
func above(path string) string {
	dir, err := os.Getwd()
	for err == nil && dir != filepath.Dir(dir) {
		name := filepath.Join(dir, filepath.FromSlash(path))
		if _, err := os.Stat(name); err == nil {
			return name
		}
		dir = filepath.Dir(dir)
	}
	return ""
}

// FuzzRead: whatever a file has in it, a history or an error, and what the history says of devices is sound.
func FuzzRead(f *testing.F) {
	f.Add([]byte(title + row("1", 1, 2) + row("2", 3, -1, "State", "RUNNING")))
	f.Add([]byte("   JobID      State               Start                 End   AllocTRES\n------- ---------- ------------------- " +
		"------------------- -----------\n      1  COMPLETED 2026-11-28T00:01:00 2026-11-28T00:02:00  gres/gpu=1\n"))
	f.Add([]byte("NodeName=n1 Gres=gpu:2 State=DOWN\nNODELIST GRES\nn[1-3] gpu:a100:2(S:0)\nReservationName=r StartTime=1 EndTime=2 " +
		"Nodes=ALL\n"))
	f.Add([]byte("NodeName|TimeStart|TimeEnd|State\nn1|2026-11-28T00:01:00|Unknown|DOWN\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		h, err := read(t, history.Options{}, string(content))
		if err != nil {
			return
		}
		for i, holds := range h.Held {
			last := quantity.Instant(0)
			for _, x := range holds {
				if x.From < last || x.To <= x.From || int(x.Run) >= len(h.Runs) {
					t.Fatalf("hold %+v of device %d behind %d", x, i, last)
				}
				last = x.To
			}
			for range h.Idle(i, true) {
				continue
			}
		}
	})
}

// TestALongLineIsOne: what no scheduler writes is left out by itself, wherever it stands, and the rows behind it count.
func TestALongLineIsOne(t *testing.T) {
	const head = "JobID|Start|End|AllocTRES|NodeList|State\n"
	row := func(n int) string {
		return fmt.Sprintf("%d|2026-11-28T00:0%d:00|2026-11-28T00:0%d:30|gres/gpu=1|n1|COMPLETED\n", n, n, n)
	}
	long := "9|" + strings.Repeat("x", 700_000)
	for name, text := range map[string]string{"first": head + long + "\n" + row(1) + row(2),
		"between": head + row(1) + long + "\n" + row(2),
		"last":    head + row(1) + row(2) + long} {
		b := history.NewBook(history.Options{})
		if err := Format().Read(b, strings.NewReader(text), "dump"); err != nil {
			t.Fatal(name, err)
		}
		h, err := b.Close()
		if err != nil || len(h.Runs) != 2 {
			t.Fatalf("%s: %v, %+v", name, err, h)
		}
		if i := slices.IndexFunc(h.Oddities, func(o history.Oddity) bool { return strings.Contains(o.Name, "longer than any") }); i < 0 ||
			h.Oddities[i].Count != 1 || !strings.HasPrefix(h.Oddities[i].Places[0], "dump:") {
			t.Errorf("%s: %+v", name, h.Oddities)
		}
	}
}
