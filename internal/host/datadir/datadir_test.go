package datadir

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/executor/shim/durable"
)

func TestUnknownDataIsNotTouched(t *testing.T) {
	for _, c := range []struct {
		name, file, content string
		kind                errkind.Kind
		says                string
	}{
		{"a newer format", formatName, "sluice data 99\n", errkind.Unsupported, `"sluice data 99"`},
		{"an empty format", formatName, "", errkind.Unsupported, `""`},
		{"somebody's files", "thesis.tex", "x", errkind.Unsupported, `"thesis.tex"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			at := t.TempDir()
			path := filepath.Join(at, c.file)
			if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := Take(at); errkind.Of(err) != c.kind || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want kind %v naming %s", err, c.kind, c.says)
			}
			data, err := os.ReadFile(path)
			if got := names(t, at); err != nil || string(data) != c.content || !slices.Equal(got, []string{c.file}) {
				t.Errorf("the directory was touched: %q %v", got, err)
			}
		})
	}
}

func TestNewDirectoryIsBegun(t *testing.T) {
	at := t.TempDir()
	// As a death between the lock and the format leaves it.
	for _, n := range []string{lockName, formatName + durable.Temporary, earlierTemp} {
		if err := os.WriteFile(filepath.Join(at, n), []byte("slu"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d, err := Take(at)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(at, formatName))
	if err != nil || string(data) != format+"\n" {
		t.Errorf("FORMAT is %q, %v", data, err)
	}
}

func names(t *testing.T, dir string) (out []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		out = append(out, e.Name())
	}
	return out
}

func TestNodesKeepTheirNumbers(t *testing.T) {
	got := Renames([]job.NodeID{"a", "a-1", "b"}, []job.NodeID{"b-1", "b-2"})
	want := protocol.Renames{"a-1": "b-1", "a-2": "b-2", "a-1-1": "b-1", "a-1-2": "b-2"}
	if len(got) != len(want) {
		t.Errorf("%v", got)
	}
	for was, is := range want {
		if got[was] != is {
			t.Errorf("%s is %s, want %s", was, got[was], is)
		}
	}
	if r := Renames([]job.NodeID{"b"}, []job.NodeID{"b"}); r != nil {
		t.Errorf("%v", r)
	}
}
