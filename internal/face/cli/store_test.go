package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/face/cli/session"
)

// TestTheStoreCommands puts a directory and a file, finds them again, and removes them; no daemon is asked.
func TestTheStoreCommands(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	place := "path:" + filepath.Join(dir, "store")
	if err := os.MkdirAll("work/sub", 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"work/run.sh": "#!/bin/sh\n", "work/sub/data": "data", "model": "weights"} {
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc", "work/out"); err != nil {
		t.Fatal(err)
	}
	in := func(args ...string) result {
		return runWith(t, nil, append(append([]string{"store"}, args...), "--store", place)...)
	}
	ok := func(args ...string) result {
		t.Helper()
		r := in(args...)
		if r.code != 0 {
			t.Fatalf("store %v: %+v", args, r)
		}
		return r
	}
	if r := in("ls"); r.code == 0 || !strings.Contains(r.err, "sluice store init") {
		t.Errorf("a directory that is no store: %+v", r)
	}
	ok("init")
	r := ok("put", "work", "-o", "json")
	var put struct {
		Digest, Name string
		Bytes, Files int64
	}
	if err := json.Unmarshal([]byte(r.out), &put); err != nil || len(put.Digest) != 64 || put.Files != 3 || put.Name != "pinned/"+
		put.Digest {
		t.Fatalf("%s: %v", r.out, err)
	}
	if !strings.Contains(r.err, "out is left out: it links to /etc") {
		t.Errorf("it says of what is left out: %q", r.err)
	}
	if again := ok("put", "work", "-o", "name"); again.out != put.Digest+"\n" {
		t.Errorf("the same directory is %q the second time", again.out)
	}
	ok("put", "model", "--name", "pinned/model")
	ok("get", "store://"+put.Digest, "back")
	if text, err := os.ReadFile("back/sub/data"); err != nil || string(text) != "data" {
		t.Errorf("%q, %v", text, err)
	}
	if r = ok("get", "pinned/model", "-", "--raw"); r.out != "weights" {
		t.Errorf("the model is %q", r.out)
	}
	ok("get", "pinned/model", "model.back", "--raw")
	ok("get", put.Digest, "slash/")
	for _, bad := range [][]string{
		{"get", put.Digest, "back"},
		{"get", "pinned/model", "model.back", "--raw"},
		{"get", "pinned/model", "somewhere"},
		{"get", "pinned/none", "somewhere"},
		{"get", strings.Repeat("0", 64), "somewhere"},
		{"put", "nothing"},
		{"put", "model", "--name", "../x"},
		{"rm", "pinned/none"},
		{"gc", "--age", "1m"},
	} {
		if r = in(bad...); r.code == 0 || r.err == "" {
			t.Errorf("store %v: %+v", bad, r)
		}
	}
	if _, err := os.Lstat("somewhere"); err == nil {
		t.Error("something is left of what could not be got")
	}
	var list []struct {
		Digest string
		Names  []string
	}
	if err := json.Unmarshal([]byte(ok("ls", "-o", "json").out), &list); err != nil || len(list) != 2 {
		t.Errorf("%v, %v", list, err)
	}
	if r = ok("ls"); !strings.Contains(r.out, "pinned/model (data)") {
		t.Errorf("ls says\n%s", r.out)
	}
	if r = ok("ls", "nothing"); !strings.Contains(r.out, "nothing is stored") {
		t.Errorf("ls of an empty folder says\n%s", r.out)
	}
	object := filepath.Join(dir, "store", "objects", put.Digest[:2], put.Digest)
	if r = in("rm", "--object", put.Digest); r.code == 0 || !strings.Contains(r.err, "is whole") {
		t.Errorf("removing an object that is whole: %+v", r)
	}
	if err := os.Chmod(object, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(object, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r = in("get", put.Digest, "-", "--raw"); r.code == 0 || !strings.Contains(r.err, "sluice store rm --object "+put.Digest) {
		t.Errorf("a damaged object: %+v", r)
	}
	ok("rm", "--object", put.Digest)
	ok("put", "work")
	ok("get", put.Digest, "mended")
	ok("rm", put.Digest)
	if r = ok("gc", "--dry-run"); !strings.Contains(r.out, "0 of 2 objects to be removed") { // it is young
		t.Errorf("gc says %s", r.out)
	}
	if r := runWith(t, nil, "store", "ls", "--data", filepath.Join(dir, "none")); r.code == 0 ||
		!strings.Contains(r.err, "start the daemon once") {
		t.Errorf("a data directory without a store: %+v", r)
	}
	if r := runWith(t, map[string]string{"SLUICE_STORE": place}, "store", "ls", "-o", "name"); r.code != 0 ||
		strings.Count(r.out, "\n") != 2 {
		t.Errorf("by the environment: %+v", r)
	}
	if r := runWith(t, nil, "store", "ls", "--store", "nfs:/x"); r.code != command.ExitUsage ||
		!strings.Contains(r.err, "path:/mnt/shared") {
		t.Errorf("a kind that is none: %+v", r)
	}
	file := filepath.Join(dir, "daemon.yml")
	if err := os.WriteFile(file, []byte("store: "+place+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := runWith(t, nil, "store", "ls", "--config", file, "-o", "name"); r.code != 0 || strings.Count(r.out, "\n") != 2 {
		t.Errorf("by the daemon's file: %+v", r)
	}
}

// runWith is sluice without a daemon, in an environment.
func runWith(t *testing.T, env map[string]string, args ...string) result {
	t.Helper()
	var out, errs strings.Builder
	code := Run(t.Context(), Deps{Args: args, Options: session.Options{In: strings.NewReader(""), Out: &out, Err: &errs,
		Getenv: func(key string) string { return env[key] }}})
	return result{out: out.String(), err: errs.String(), code: code}
}
