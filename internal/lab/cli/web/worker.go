//go:build js

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"syscall/js"
	_ "time/tzdata" // a browser has no files of time zones

	"github.com/spf13/pflag"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/lab/cli/forecaster"
	histories "sluice.dev/sluice/internal/lab/history/all"
)

// What a page may take of the 4 GiB that a WebAssembly program can have: garbage is collected rarely, and more often towards the end.
const (
	collectAt = 300 // percent
	mostHeap  = 3 << 30
)

// main answers the request that worker.js has put where all of the worker sees it, in messages to the page, or plays what comes through
// the port of a helper.
func main() {
	debug.SetGCPercent(collectAt)
	debug.SetMemoryLimit(mostHeap)
	if port := js.Global().Get("port"); port.Truthy() {
		help(port)
		return
	}
	if err := answer(js.Global().Get("request")); err != nil {
		post(map[string]any{"kind": "failed", "text": err.Error()})
	}
}

func post(message map[string]any) { js.Global().Call("postMessage", message) }

// answer is the request's: {files: [File], jobs: File or null, flags: {name: text}, workers: how many runs may go at once}.
func answer(request js.Value) error {
	var r forecaster.Request
	if err := flags(&r, request.Get("flags")); err != nil {
		return err
	}
	if jobs := request.Get("jobs"); jobs.Truthy() {
		content, err := io.ReadAll(open(jobs, nil))
		if err != nil {
			return fmt.Errorf("--jobs: %w", err)
		}
		r.Jobs = &forecaster.Jobs{File: jobs.Get("name").String(), Text: string(content)}
	}
	files := request.Get("files")
	total := 0.
	for i := range files.Length() {
		total += files.Index(i).Get("size").Float()
	}
	done := 0.
	for i := range files.Length() {
		file := files.Index(i)
		name := file.Get("name").String()
		r.Files = append(r.Files, histories.File{Name: name, Open: func() (io.ReadCloser, error) {
			return io.NopCloser(bufio.NewReaderSize(open(file, func(n int) {
				done += float64(n)
				post(map[string]any{"kind": "reading", "name": name, "done": done, "total": total})
			}), piece)), nil
		}})
	}
	r.Progress = func(_ string, done, total int) {
		if total >= 0 {
			post(map[string]any{"kind": "playing", "done": done, "total": total})
		}
	}
	if n := request.Get("workers").Int(); n > 1 {
		r.Workers, r.Elsewhere = n, newHelpers(n).play
	}
	a, err := r.Answer(context.Background()) // the page cancels by ending the worker
	if err != nil {
		return err
	}
	var page, text strings.Builder
	if err := a.HTML(&page); err != nil {
		return err
	}
	if err := forecaster.JSON(&text, a); err != nil {
		return err
	}
	post(map[string]any{"kind": "answered", "says": a.Says, "html": page.String(), "json": text.String()})
	return nil
}

// flags takes those of the command from the fields of the page, {name: text}; an empty one is not given.
func flags(r *forecaster.Request, fields js.Value) error {
	set := pflag.NewFlagSet("forecast", pflag.ContinueOnError)
	r.Flags(set)
	names := js.Global().Get("Object").Call("keys", fields)
	for i := range names.Length() {
		name := names.Index(i).String()
		if text := fields.Get(name).String(); text != "" {
			if err := set.Set(name, text); err != nil {
				return err
			}
		}
	}
	return nil
}

// piece is how much of a file is read at once, in bytes.
const piece = 1 << 20

// blob reads a file of the page piece by piece; only a worker can wait for each.
type blob struct {
	file     js.Value
	at, size int64
	// read hears how much came; nil if nobody wants to know.
	read func(n int)
}

func open(file js.Value, read func(n int)) *blob {
	return &blob{file: file, size: int64(file.Get("size").Float()), read: read}
}

// Read reads at most what p has room for. Its error is the browser's: a folder, or a file that has changed or is not to be read.
func (b *blob) Read(p []byte) (n int, err error) {
	if b.at >= b.size {
		return 0, io.EOF
	}
	defer func() {
		if wrong, ok := recover().(js.Error); ok {
			n, err = 0, errkind.Errorf(errkind.Unavailable, "read %s: %s: is it a file, as it was when you chose it?",
				b.file.Get("name").String(), wrong.Get("message").String())
		}
	}()
	part := b.file.Call("slice", b.at, min(b.at+int64(len(p)), b.size))
	bytes := js.Global().Get("FileReaderSync").New().Call("readAsArrayBuffer", part)
	n = js.CopyBytesToGo(p, js.Global().Get("Uint8Array").New(bytes))
	b.at += int64(n)
	if b.read != nil {
		b.read(n)
	}
	return n, nil
}
