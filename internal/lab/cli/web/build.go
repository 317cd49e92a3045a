//go:build !js

package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"sluice.dev/sluice/internal/lab/history/prometheus"
	"sluice.dev/sluice/internal/lab/history/slurm"
)

// largest is how many bytes the page may have: it is passed on by mail and opened from slow disks.
const largest = 12 << 20

//go:embed page.html
var pageHTML string

//go:embed page.js
var pageScript string

//go:embed worker.js
var workerScript string

func main() {
	var program, glue, version, out string
	flag.StringVar(&program, "program", "", "the simulator: this package, built with GOOS=js GOARCH=wasm")
	flag.StringVar(&glue, "glue", "", "wasm_exec.js of the Go that built it")
	flag.StringVar(&version, "version", "unknown", "the version that the page names")
	flag.StringVar(&out, "out", "dist/forecast", "the folder to write index.html and forecast.wasm to")
	flag.Parse()
	if err := write(program, glue, version, out); err != nil {
		fmt.Fprintln(os.Stderr, "forecast-page:", err)
		os.Exit(1)
	}
}

// write makes the folder. The program lies beside the page for those who serve it in another way; the page needs nothing but itself.
func write(program, glue, version, out string) error {
	wasm, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	runs, err := os.ReadFile(glue)
	if err != nil {
		return err
	}
	page, err := assemble(wasm, string(runs), version)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, "forecast.wasm"), wasm, 0o644); err != nil {
		return err
	}
	index := filepath.Join(out, "index.html")
	fmt.Printf("%s: %.1f MiB, at most %d\n", index, float64(len(page))/(1<<20), largest>>20)
	return os.WriteFile(index, page, 0o644)
}

// assemble is the page with everything in it.
func assemble(program []byte, glue, version string) ([]byte, error) {
	worker := glue + "\n" + workerScript
	for name, script := range map[string]string{"wasm_exec.js": glue, "worker.js": workerScript, "page.js": pageScript} {
		// These would end a script's element, or hide its end.
		if lower := strings.ToLower(script); strings.Contains(lower, "</script") || strings.Contains(lower, "<!--") {
			return nil, fmt.Errorf("%s has %q or %q in it, which no script in a page may have", name, "</script", "<!--")
		}
	}
	var packed bytes.Buffer
	zip, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	_, err = zip.Write(program)
	if err = errors.Join(err, zip.Close()); err != nil {
		return nil, err
	}
	t, err := template.New("page").Parse(pageHTML)
	if err != nil {
		return nil, err
	}
	var page bytes.Buffer
	if err := t.Execute(&page, struct{ Policy, Slurm, Prometheus, Version, Program, Worker, Page string }{
		Policy: policy(pageScript), Slurm: help(), Prometheus: html.EscapeString(prometheus.Help()), Version: html.EscapeString(version),
		Program: base64.StdEncoding.EncodeToString(packed.Bytes()), Worker: worker, Page: pageScript,
	}); err != nil {
		return nil, err
	}
	if page.Len() > largest {
		return nil, fmt.Errorf("the page has %.1f MiB, more than %d: what does the program have in it that no forecast needs? "+
			"(go tool nm -size)",
			float64(page.Len())/(1<<20), largest>>20)
	}
	return page.Bytes(), nil
}

// policy is the page's Content-Security-Policy: no connection, no other origin, and no script but its own and the worker it makes. A
// picture of an answer styles its elements one by one, and an answer is shown under the same policy, so styles can't be named by hash;
// with nothing else allowed a style can load nothing.
func policy(script string) string {
	sum := sha256.Sum256([]byte(script))
	return strings.Join([]string{
		"default-src 'none'", "connect-src 'none'",
		"script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "' 'wasm-unsafe-eval'",
		"worker-src blob:", "style-src 'unsafe-inline'", "form-action 'none'", "base-uri 'none'",
	}, "; ")
}

// help is how Slurm's files are dumped, with places for the days, which the page fills in when it is opened.
func help() string {
	const day = "2006-01-02"
	to := time.Date(2001, 3, 15, 0, 0, 0, 0, time.UTC)
	return strings.NewReplacer(to.Format(day), `<span class="to"></span>`, to.AddDate(0, -1, 0).Format(day), `<span class="from"></span>`).
		Replace(html.EscapeString(slurm.Help(to)))
}
