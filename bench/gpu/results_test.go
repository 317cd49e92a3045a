package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func sampleRun() *results {
	return &results{
		Date:    time.Date(2035, 5, 1, 0, 0, 0, 0, time.UTC),
		Machine: &machine{Version: "v9", Driver: "600.10", GPUs: []device{{Name: "NVIDIA Example", Total: 80 << 30}}},
		Trials: []verdict{{Trial: "memory", Shows: "something", Held: true, Figures: []figure{{"a | b", "1 MiB"}}},
			{Trial: "empty", Shows: "another", Why: "somebody\nwas there"}},
	}
}

func TestThePage(t *testing.T) {
	dir := t.TempDir()
	r := sampleRun()
	if err := r.write(dir); err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(dir, "page.md")
	put(t, page, []byte("before\n"+pageFrom+"what was\n"+pageTo+"after\n"))
	if err := writePage(page, filepath.Join(dir, "results.json")); err != nil {
		t.Fatal(err)
	}
	got := string(read(t, page))
	for _, want := range []string{"before\n", "after\n", "1 x NVIDIA Example with 80.0 GiB, driver 600.10", `a \| b`, "| held |",
		"**did not hold**: somebody was there"} {
		if !strings.Contains(got, want) {
			t.Errorf("the page lacks %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "what was\n") || strings.Contains(got, "ehearsal") {
		t.Errorf("the page has what it should not have:\n%s", got)
	}
	if failed := r.failed(); len(failed) != 1 || failed[0] != "empty" {
		t.Errorf("failed %v", failed)
	}
}

// A rehearsal had no GPU: nothing of it gets on a page, and what it writes says so.
func TestARehearsalGetsOnNoPage(t *testing.T) {
	dir := t.TempDir()
	r := sampleRun()
	r.Rehearsal = true
	if err := r.write(dir); err != nil {
		t.Fatal(err)
	}
	if text := string(read(t, filepath.Join(dir, "gpu.md"))); !strings.HasPrefix(text, "**A rehearsal") {
		t.Errorf("it does not say what it is:\n%s", text)
	}
	page := filepath.Join(dir, "page.md")
	was := pageFrom + pageTo
	put(t, page, []byte(was))
	if err := writePage(page, filepath.Join(dir, "results.json")); err == nil || !strings.Contains(err.Error(), "had no GPU") {
		t.Errorf("a rehearsal got on a page: %v", err)
	}
	if string(read(t, page)) != was {
		t.Error("the page has changed")
	}
}

func TestWhatIsNoResult(t *testing.T) {
	dir := t.TempDir()
	page, file := filepath.Join(dir, "page.md"), filepath.Join(dir, "results.json")
	put(t, page, []byte(pageFrom+pageTo))
	for _, text := range []string{"", "{}", `{"machine": {}}`, `{"trials": [{}]}`} {
		put(t, file, []byte(text))
		if err := writePage(page, file); err == nil {
			t.Errorf("%q passes for results", text)
		}
	}
	if err := sampleRun().write(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(page, []byte("no marks"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := writePage(page, file); err == nil {
		t.Error("a page without marks is written to")
	}
}

// The page of the repository has the marks, and until a GPU was tried it says that none was.
func TestThePageOfTheRepository(t *testing.T) {
	text := string(read(t, "../../docs/gpu.md"))
	_, rest, ok := strings.Cut(text, pageFrom)
	shown, _, also := strings.Cut(rest, pageTo)
	if !ok || !also {
		t.Fatalf("docs/gpu.md has no marks %q and %q", pageFrom, pageTo)
	}
	limits := strings.Contains(string(read(t, "../../README.md")), "no GPU has been tried")
	if tried := strings.Contains(shown, "| `memory` |"); tried == limits {
		t.Errorf("docs/gpu.md has results: %v; README says that no GPU has been tried: %v", tried, limits)
	}
}
