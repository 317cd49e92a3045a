// Package clitest is what tests of commands share: a session with a daemon that is a fake, and frames as text.
package clitest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/edge/terminal"
	"sluice.dev/sluice/internal/face/api"
	"sluice.dev/sluice/internal/face/cli/session"
)

// Session calls a service that is served until the test ends. It waits for nobody, and its environment has nothing but the address.
func Session(t *testing.T, service api.Service, now func() time.Time) *session.Session {
	t.Helper()
	s := httptest.NewServer(api.Handler(api.Options{Service: service, Now: now}))
	t.Cleanup(s.Close)
	a := session.New(session.Options{Now: now, Patience: -1, Getenv: func(string) string { return "" }})
	a.Call(strings.TrimPrefix(s.URL, "http://"))
	a.Format = "table"
	return a
}

// Pictured is a frame as text; lines that stand out are marked by their style.
func Pictured(rows []terminal.Row) string {
	marks := map[terminal.Style]string{
		terminal.Plain: " ", terminal.Title: "=", terminal.Heading: "*", terminal.Faint: ".", terminal.Good: "+", terminal.Notable: "~",
		terminal.Bad: "!",
	}
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, "%s|%s\n", marks[r.Style], strings.TrimRight(terminal.Line(r.Text), " "))
	}
	return b.String()
}

// Tree writes files below a new directory; a value that begins with -> is a link.
func Tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(file), 0o755)
		if to, link := strings.CutPrefix(text, "->"); link {
			err = errors.Join(err, os.Symlink(to, file))
		} else {
			at := time.Unix(1e9, 5e8)
			err = errors.Join(err, os.WriteFile(file, []byte(text), 0o600), os.Chtimes(file, at, at))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Entries lists what a packed directory holds: name, type, mode and content or link.
func Entries(t *testing.T, packed []byte) []string {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Typeflag == tar.TypeReg && !h.ModTime.Equal(time.Unix(1e9, 0)) ||
			h.Typeflag != tar.TypeReg && h.ModTime.Unix() != 0 {
			t.Errorf("%s carries %+v", h.Name, h)
		}
		out = append(out, fmt.Sprintf("%c %o %s %s%s", h.Typeflag, h.Mode, h.Name, text, h.Linkname))
	}
}
