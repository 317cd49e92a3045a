package utilization

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/history"
)

// read gives the devices of a log and what was measured of them, in seconds behind the hour, or the error of a log that has none.
func read(format int, file, text string) (devices, odd []string, err error) {
	b := history.NewBook(history.Options{Zone: time.FixedZone("", 3600)})
	f := Formats()[format]
	if err := f.Read(b, strings.NewReader(text), file); err != nil {
		return nil, nil, err
	}
	h, err := b.Close()
	if err != nil {
		return nil, nil, err
	}
	show := func(s history.Spans) string {
		var out []string
		for _, x := range s {
			out = append(out, fmt.Sprintf("%g..%g", seconds(x.From), seconds(x.To)))
		}
		return strings.Join(out, ",")
	}
	for i, d := range h.Devices {
		text := fmt.Sprintf("%s/%d %s", h.Nodes[d.Node].Name, i-int(h.Nodes[d.Node].First), h.Kinds[d.Kind].Name)
		if u := h.Used[i]; u != nil {
			text += fmt.Sprintf(" idle %s busy %s", show(u.Idle), show(u.Busy))
		}
		var held history.Spans
		for _, x := range h.Held[i] {
			held = held.With(x.From, x.To)
		}
		devices = append(devices, text+" held "+show(held))
	}
	for _, o := range h.Oddities {
		odd = append(odd, fmt.Sprintf("%s: %d %s", o.Name, o.Count, strings.Join(o.Places, " ")))
	}
	return devices, odd, nil
}

// seconds behind 2026-11-29 13:00:00 UTC.
func seconds(t quantity.Instant) float64 {
	return t.Sub(quantity.At(time.Date(2026, 11, 29, 13, 0, 0, 0, time.UTC))).Seconds()
}

// rows are those of two devices each 10 seconds from 14:00 local time on, as put by a function of the number and the device.
func rows(n int, put func(i, device int, at time.Time) string) string {
	var out strings.Builder
	for i := range n {
		for device := range 2 {
			at := time.Date(2026, 11, 29, 14, 0, 10*i, 123e6, time.UTC)
			if line := put(i, device, at); line != "" {
				out.WriteString(line + "\n")
			}
		}
	}
	return out.String()
}

const stamp = "2006/01/02 15:04:05.000"

func want(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func TestTables(t *testing.T) {
	use := func(i, device int) int { // of the first device from 20 s to 40 s
		if device == 0 && i >= 2 && i <= 4 {
			return 35
		}
		return 0
	}
	two := []string{"n1/0 gpu idle 0.123..10.123,50.123..90.123 busy 20.123..40.123 held 10.123..50.123",
		"n1/1 gpu idle 0.123..90.123 busy  held "}
	head := "timestamp, index, utilization.gpu [%], memory.used [MiB]\n"
	plain := rows(10, func(i, d int, at time.Time) string {
		return fmt.Sprintf("%s, %d, %d %%, %d MiB", at.Format(stamp), d, use(i, d), 4)
	})
	for _, c := range []struct {
		name, file, text string
		want, odd        []string
	}{
		{"plain", "/x/n1.csv.gz", head + plain, two, nil},
		{"a name with the tool's", "nvidia-smi_n1.log", head + plain, two, nil},
		{"no head", "n1.csv", plain, two, nil},
		{"no units", "n1.csv", head + strings.NewReplacer(" %", "", " MiB", "").Replace(plain), two, nil},
		{"heads again", "n1.csv", head + plain[:strings.Index(plain, "\n")+1] + head + plain[strings.Index(plain, "\n")+1:], two, nil},
		{"columns in another order, and others", "n1.csv",
			"memory.total [MiB], memory.used [MiB], utilization.memory [%], utilization.gpu [%], uuid, timestamp\n" +
				rows(10, func(i, d int, at time.Time) string {
					return fmt.Sprintf("81920 MiB, 4 MiB, 0 %%, %d %%, GPU-%d, %s", use(i, d), 9-d, at.Format(stamp))
				}), two, nil},
		{"with a column of the host", "all.csv", "hostname, " + head + strings.ReplaceAll(plain, "2026/", "n1, 2026/"), two, nil},
		{"not measured", "n1.csv", head + rows(10, func(i, d int, at time.Time) string {
			text := []string{fmt.Sprintf("%d %%", use(i, d)), "[N/A]", "[Not Supported]"}[max(0, min(2, i-6))]
			return fmt.Sprintf("%s, %d, %s, %d MiB", at.Format(stamp), d, text, 4)
		}), []string{"n1/0 gpu idle 0.123..10.123,50.123..60.123 busy 20.123..40.123 held 10.123..50.123",
			"n1/1 gpu idle 0.123..60.123 busy  held "}, nil},
		{"samples that are missing", "n1.csv", head + rows(20, func(i, d int, at time.Time) string {
			if i >= 6 && i < 16 {
				return ""
			}
			return fmt.Sprintf("%s, %d, %d %%, %d MiB", at.Format(stamp), d, use(i, d), 4)
		}), []string{"n1/0 gpu idle 0.123..10.123,160.123..190.123 busy 20.123..40.123 held 10.123..50.123",
			"n1/1 gpu idle 0.123..50.123,160.123..190.123 busy  held "}, nil},
		{"memory in use", "n1.csv", head + rows(10, func(i, d int, at time.Time) string {
			memory := 4
			if d == 1 && i >= 5 {
				memory = 2000
			}
			return fmt.Sprintf("%s, %d, %d %%, %d MiB", at.Format(stamp), d, use(i, d), memory)
		}), []string{two[0], "n1/1 gpu idle 0.123..90.123 busy  held 40.123..90.123"}, nil},
		{"rows that are wrong", "n1.csv", head + plain +
			"2026/13/29 14:00:00.000, 0, 0 %, 4 MiB\nFailed to initialize NVML: Driver/library version mismatch\n" +
			"2026/11/29 14:00:00.000, [Unknown Error], 0 %, 4 MiB\n", two,
			[]string{"a row of measurements that can't be read: 2 n1.csv:22 n1.csv:23",
				"a row of measurements that does not say of which GPU it is: 1 n1.csv:24"}},
		{"MIG", "n1.csv", "timestamp, index, utilization.gpu [%], memory.used [MiB], mig.mode.current, name\n" +
			rows(10, func(i, d int, at time.Time) string {
				if d == 1 {
					return fmt.Sprintf("%s, 1, %s, 90 MiB, Enabled, NVIDIA A100", at.Format(stamp), []string{"[N/A]", "35 %"}[i%2])
				}
				return fmt.Sprintf("%s, 0, %d %%, 4 MiB, Disabled, NVIDIA A100", at.Format(stamp), use(i, d))
			}), []string{"n1/0 NVIDIA A100 idle 0.123..10.123,50.123..90.123 busy 20.123..40.123 held 10.123..50.123",
			"n1/1 NVIDIA A100 held "}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, odd, err := read(0, c.file, c.text)
			if err != nil {
				t.Fatal(err)
			}
			want(t, got, c.want...)
			want(t, odd, c.odd...)
			if !isTable([]byte(c.text), c.file) || isColumns([]byte(c.text), c.file) {
				t.Error("it is taken for something else")
			}
		})
	}
	for _, text := range []string{
		"timestamp, index, name\n" + plain,
		strings.ReplaceAll(plain, " MiB", " %"),
		"index, utilization.gpu [%]\n0, 1 %\n",
		"timestamp, utilization.gpu [%]\n2026/11/29 14:00:00.000, 1 %\n",
	} {
		if _, _, err := read(0, "n1.csv", text); err == nil {
			t.Errorf("%.40q says something", text)
		}
	}
	for _, text := range []string{"", "a,b\n", "JobID|State\n", "job_id,submission_time\n1,2026/11/29\n"} {
		if isTable([]byte(text), "x.csv") {
			t.Errorf("%q is taken for a log of nvidia-smi", text)
		}
	}
}

func TestColumns(t *testing.T) {
	head := "#Entity      GPUTL        GRACT        FBUSD\nID\n"
	put := func(layout string) string {
		return head + rows(10, func(i, d int, at time.Time) string {
			use, ratio := "0", "0.000"
			if d == 0 && i >= 2 && i <= 4 {
				use, ratio = "N/A", "0.450"
			}
			before := at.Add(-time.Hour).Format(layout) + " "
			if layout == "unix" {
				before = fmt.Sprintf("%d.%03d ", at.Add(-time.Hour).Unix(), 123)
			}
			return before + fmt.Sprintf("GPU %d     %s      %s    4", d, use, ratio)
		}) + "\n\ndmon was stopped due to receiving a signal\n"
	}
	two := []string{"n1/0 gpu idle 0.123..10.123,50.123..90.123 busy 20.123..40.123 held 10.123..50.123",
		"n1/1 gpu idle 0.123..90.123 busy  held "}
	for _, c := range []struct {
		name, text string
		odd        []string
	}{
		{"seconds", put("unix"), nil},
		{"with an offset", put("2006-01-02T15:04:05.000Z07:00"), nil},
		{"in brackets", put("[2006-01-02 15:04:05.000Z07:00]"), nil},
		{"an older head", strings.Replace(put("unix"), "#Entity", "# Entity", 1), nil},
		{"slices", put("unix") + "1795957200 GPU-I 0 0 0.000 4\n", []string{"a row of dcgmi dmon of a slice: 1 n1.log:26"}},
		{"without times", put("unix") + "GPU 0 0 0.000 4\n", []string{"a row of measurements that does not say when it was: 1 n1.log:26"}},
		{"short", put("unix") + "1795957200 GPU 0 0.000 4\nyesterday GPU 0 0 0 4\n",
			[]string{"a row of measurements that can't be read: 2 n1.log:26 n1.log:27"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, odd, err := read(1, "dmon-n1.log", c.text)
			if err != nil {
				t.Fatal(err)
			}
			for i := range c.odd {
				c.odd[i] = strings.ReplaceAll(c.odd[i], "n1.log", "dmon-n1.log")
			}
			want(t, got, two...)
			want(t, odd, c.odd...)
			if isTable([]byte(c.text), "") || !isColumns([]byte(c.text), "") {
				t.Error("it is taken for something else")
			}
		})
	}
}

func FuzzRead(f *testing.F) {
	f.Add(uint8(0), "timestamp, index, utilization.gpu [%]\n2026/11/29 14:00:00.000, 0, 3 %\n2026/11/29 14:00:10.000, 0, 0 %\n")
	f.Add(uint8(0), "2026/11/29 14:00:00.000, GPU-1, 3 %, 10 MiB\n")
	f.Add(uint8(1), "#Entity GPUTL\nID\n1795957200 GPU 0 1\n1795957210 GPU 0 N/A\n")
	f.Fuzz(func(t *testing.T, format uint8, text string) {
		show := func() string { return fmt.Sprint(read(int(format%2), "n1.csv", text)) }
		if a, b := show(), show(); a != b {
			t.Errorf("%q, again %q", a, b)
		}
	})
}
