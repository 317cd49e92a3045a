package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/strict"
)

// TestHostileFiles: each is refused with its reason, soon, and without much memory.
func TestHostileFiles(t *testing.T) {
	bomb := "a: &a [x, x, x, x, x, x, x, x, x]\n"
	for i := range 20 {
		bomb += fmt.Sprintf("%c: &%c [*%c, *%c, *%c, *%c, *%c]\n", 'b'+i, 'b'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i)
	}
	many := strings.Builder{}
	for i := range 2000 {
		fmt.Fprintf(&many, "bad%d: 1\n", i)
	}
	for name, c := range map[string]struct{ text, want string }{
		"alias bomb":        {bomb, "anchors and aliases are not read"},
		"ten megabytes":     {strings.Repeat("a", 10<<20), "has 10485760 bytes"},
		"deep flow":         {strings.Repeat("[", 9000) + strings.Repeat("]", 9000), "nested deeper than 16 levels"},
		"deeper flow":       {strings.Repeat("[", strict.MaxFileBytes), "exceeded max depth"},
		"deep block":        {strings.Repeat("- ", 5000), "nested deeper than 16 levels"},
		"deep mapping":      {strings.Repeat("{a: ", 5000) + strings.Repeat("}", 5000), "nested deeper than 16 levels"},
		"many values":       {"[" + strings.Repeat("1,", 400_000) + "]", "more than 200000 values"},
		"many documents":    {strings.Repeat("---\na\n", 2000), "more than 1000 documents"},
		"many problems":     {many.String(), "more problems"},
		"long key":          {"? " + strings.Repeat("k", 100_000) + "\n" + ": 1", "want one of"},
		"many comments":     {strings.Repeat("#\n", strict.MaxFileBytes/2), "the file is empty"},
		"not UTF-8":         {"apiVersion: \xff", "byte 0xff is not UTF-8"},
		"second is refused": {"---\n- [\n", "not valid YAML"},
	} {
		start := time.Now()
		_, err := ParseJobs("f", []byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %.300v, want %q in it", name, err, c.want)
		}
		if err != nil && len(err.Error()) > 1<<20 {
			t.Errorf("%s: an error of %d bytes", name, len(err.Error()))
		}
		if d := time.Since(start); d > 20*time.Second {
			t.Errorf("%s: took %s", name, d)
		} else if d > 500*time.Millisecond {
			t.Logf("%s: took %s", name, d)
		}
	}
}

func TestManyJobsWhereOneIsWanted(t *testing.T) {
	data, err := os.ReadFile("testdata/several.good.yml")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := ParseJob("f", data); err == nil || !strings.Contains(err.Error(), "holds 2 jobs") {
		t.Errorf("error %v", err)
	}
}

func TestParseDaemon(t *testing.T) {
	d, err := ParseDaemon("f", []byte("queues:\n- {name: default}\n- {name: lab, weight: 3, cap: 2, maxJobs: 10, maxWindow: 15m, user: "+
		"nobody}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Queues) != 2 || d.Queues[0].Weight != 1 || d.Queues[1].MaxWindow != 15*time.Minute || d.Queues[1].User != "nobody" ||
		d.Queues[1].Cap != 2 || d.Queues[1].MaxJobs != 10 {
		t.Errorf("got %+v", d)
	}
}

// FuzzParseJobs: no input breaks the reader; every error is the list of problems with places; what is accepted survives
// a round trip.
func FuzzParseJobs(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.yml")
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		jobs, err := ParseJobs("f", data)
		if err != nil {
			var ps *strict.Problems
			if !errors.As(err, &ps) || len(ps.List) == 0 {
				t.Fatalf("error %v is no list of problems", err)
			}
			return
		}
		for _, j := range jobs {
			text, err := RenderJob(j.Spec, j.Workdir)
			if err != nil {
				t.Fatal(err)
			}
			spec, workdir, err := ParseJob("again", text)
			if err != nil {
				t.Fatalf("%v in\n%s", err, text)
			}
			if !reflect.DeepEqual(spec, j.Spec) || workdir != j.Workdir {
				t.Fatalf("%+v became %+v", j.Spec, spec)
			}
		}
	})
}

// FuzzParseDaemon: no input breaks the reader.
func FuzzParseDaemon(f *testing.F) {
	f.Add([]byte("queues: [{name: default, weight: 1, cap: 1, maxJobs: 1, maxWindow: 1h, user: nobody}]"))
	f.Add([]byte("market: {lambda: 0.3, weights: {time: 1}, starve: never, repack: never, payment: vcg}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := ParseDaemon("f", data)
		if err == nil {
			for _, q := range d.Queues {
				if !job.ValidName(q.Name) || q.Weight < 1 {
					t.Fatalf("accepted %+v", q)
				}
			}
			if d.Market != nil && d.Market.Validate() != nil {
				t.Fatalf("accepted %+v: %v", d.Market, d.Market.Validate())
			}
		}
	})
}
