//go:build !js

package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// part is what stands between two texts of a page.
func part(t *testing.T, page, from, to string) string {
	t.Helper()
	_, rest, ok := strings.Cut(page, from)
	got, _, ends := strings.Cut(rest, to)
	if !ok || !ends {
		t.Fatalf("nothing stands between %q and %q", from, to)
	}
	return got
}

// TestAssemble: the page has the whole program in it, runs its own script alone, and names nothing outside itself.
func TestAssemble(t *testing.T) {
	program := []byte("\x00asm" + strings.Repeat("program", 1000))
	out, err := assemble(program, "// glue\n", "v1 <x>")
	if err != nil {
		t.Fatal(err)
	}
	page := string(out)
	packed, err := base64.StdEncoding.DecodeString(part(t, page, `id="program">`, "</script>"))
	if err != nil {
		t.Fatal(err)
	}
	zip, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(zip); err != nil || !bytes.Equal(got, program) {
		t.Errorf("%v: the page has another program in it", err)
	}
	if got := part(t, page, `id="worker">`, "</script>"); got != "// glue\n\n"+workerScript {
		t.Errorf("the worker is %.200q", got)
	}
	sum := sha256.Sum256([]byte(part(t, page, "<script>", "</script>")))
	rule := part(t, page, `http-equiv="Content-Security-Policy" content="`, `"`)
	for _, want := range []string{"default-src 'none'", "connect-src 'none'", "worker-src blob:", "form-action 'none'",
		"script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "' 'wasm-unsafe-eval'"} {
		if !strings.Contains(rule, want) {
			t.Errorf("the policy lacks %s: %s", want, rule)
		}
	}
	if strings.Index(page, "Content-Security-Policy") > strings.Index(page, "<style>") {
		t.Error("the policy must stand before what it is for")
	}
	foreign := regexp.MustCompile(`(?i)(src|href|action)\s*=\s*["']?(https?:|//)|@import|(?-i:\burl\()|\{\{|<x>`)
	if bad := foreign.FindString(page); bad != "" {
		t.Errorf("the page has %q", bad)
	}
	if strings.Count(page, "<script") != 3 || !strings.Contains(page, "v1 &lt;x&gt;") {
		t.Errorf("%d scripts", strings.Count(page, "<script"))
	}
	again, err := assemble(program, "// glue\n", "v1 <x>")
	if err != nil || !bytes.Equal(again, out) {
		t.Errorf("%v: built again it is another", err)
	}
}

// TestHelpHasNoDay: the command that dumps the accounting names the month that ends when the page is opened, not when it was built.
func TestHelpHasNoDay(t *testing.T) {
	text := help()
	if !strings.Contains(text, `-S <span class="from"></span> -E <span class="to"></span>`) || strings.Contains(text, "2001") ||
		!strings.Contains(text, "&#39;") {
		t.Error(text)
	}
}

// TestRefusesWhatCannotBe: a page that is too large, and a script that would end early.
func TestRefusesWhatCannotBe(t *testing.T) {
	noise := make([]byte, largest)
	source := rand.NewChaCha8([32]byte{1})
	_, _ = source.Read(noise) // it has no errors
	if _, err := assemble(noise, "", ""); err == nil || !strings.Contains(err.Error(), "more than 12") {
		t.Error(err)
	}
	if _, err := assemble(nil, "x = '</SCRIPT>'", ""); err == nil || !strings.Contains(err.Error(), "wasm_exec.js") {
		t.Error(err)
	}
}
