// Package utilization reads what people write down of how busy their GPUs are: the tables of nvidia-smi --query-gpu -l, and the columns of
// dcgmi dmon. It knows nothing of who held them.
package utilization

import (
	"bytes"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/history"
)

const (
	leftOut     = "left out"
	badRow      = "a row of measurements that can't be read"
	noDevice    = "a row of measurements that does not say of which GPU it is"
	noDeviceTo  = "left out: ask for index too"
	noMeasure   = "a table of measurements without utilization and without memory"
	noMeasureTo = "left out: ask for utilization.gpu and memory.used"
	noTime      = "a row of measurements that does not say when it was"
	noTimeTo    = "left out: ask nvidia-smi for timestamp too, and let ts put the time before the lines of dcgmi dmon, which prints none"
)

// node is whose file it is, by the file's name: gpu-n1.csv.gz is of n1.
func node(file string) string {
	name := filepath.Base(file)
	for _, end := range []string{".gz", ".csv", ".log", ".txt", ".out"} {
		name = strings.TrimSuffix(name, end)
	}
	for _, begin := range []string{"nvidia-smi", "nvidia_smi", "smi", "dcgmi-dmon", "dcgmi", "dcgm", "dmon", "gpu", "util"} {
		if rest, ok := strings.CutPrefix(name, begin); ok && len(rest) > 1 && strings.ContainsAny(rest[:1], "-_.") {
			return rest[1:]
		}
	}
	return name
}

// log is the samples of one file, which go to the book a device at a time: a call for each sample would look each up.
type log struct {
	book    *history.Book
	samples map[history.Gauge][]history.Sample
}

func (l *log) add(g history.Gauge, s history.Sample) { l.samples[g] = append(l.samples[g], s) }

func (l *log) done() {
	for g, samples := range l.samples { //sluice:sorted the book puts them in order
		l.book.Samples().Measure(g, samples...)
	}
}

// number reads "35", "35 %" and "512 MiB"; false for what stands where nothing was measured, such as "[N/A]".
func number(cell []byte) (float64, bool) {
	digits, _, _ := bytes.Cut(cell, []byte(" "))
	x, err := strconv.ParseFloat(string(bytes.TrimSuffix(digits, []byte("%"))), 64)
	return x, err == nil && x >= 0 && x < 1<<31
}

// clock reads instants with and without an offset.
type clock struct {
	book *history.Book
	zone *time.Location
}

// layouts without an offset, and with one. Go reads a fraction of a second behind any.
func layouts() (local, full []string) {
	return []string{"2006/01/02 15:04:05", "2006-01-02T15:04:05", "2006-01-02 15:04:05"},
		[]string{time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05 -0700",
			"2006/01/02 15:04:05 -0700"}
}

// instant reads 2026/11/29 14:03:28.123, the same with "-" or T, with an offset or without, or seconds since 1970.
func (c *clock) instant(text string) (quantity.Instant, bool) {
	if x, err := strconv.ParseFloat(text, 64); err == nil {
		return quantity.Instant(math.Round(x*1e3)) * 1e6, x >= 1e8 && x < 4102444800
	}
	local, full := layouts()
	for _, layout := range local {
		if len(text) < len(layout) || text[4] != layout[4] || text[10] != layout[10] {
			continue
		}
		if _, err := time.Parse(layout, text); err != nil { // it may have an offset
			continue
		}
		if c.zone == nil {
			c.zone = c.book.Zone()
		}
		if t, err := time.ParseInLocation(layout, text, c.zone); err == nil {
			return quantity.At(t), known(t)
		}
	}
	for _, layout := range full {
		if t, err := time.Parse(layout, text); err == nil {
			return quantity.At(t), known(t)
		}
	}
	return 0, false
}

func known(t time.Time) bool { return t.Year() >= 1973 && t.Year() < 2100 }
