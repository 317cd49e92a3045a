// Command journal tries the candidates for Sluice's journal: how fast they commit, and what they do with flipped bits,
// cut tails and full disks. It prints the tables of docs/adr/0003-journal.md. It knows nothing of Sluice; it is a module
// of its own so that Sluice's go.mod has only what was chosen.
//
//	go run . rate     commits, latencies, bytes a record
//	go run . flips    one flipped bit, then open and scan in a process of its own
//	go run . cuts     the tail of the last log cut at many places
//	go run . full     a limit on file size as a full disk, lifted again
//	go run . size     modules, packages and binary size of each
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	commands := map[string]func() error{"rate": rate, "flips": flips, "cuts": cuts, "full": full, "size": sizes}
	if len(os.Args) == 4 && os.Args[1] == "child" {
		child(os.Args[2], os.Args[3])
		return
	}
	run, ok := commands[arg(1)]
	if !ok {
		fmt.Fprintln(os.Stderr, "usage: journal rate|flips|cuts|full|size")
		os.Exit(2)
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func arg(i int) string {
	if i < len(os.Args) {
		return os.Args[i]
	}
	return ""
}

// candidate is one way to store records in order. Scan reads all of them and returns an error if the store says that
// something is wrong.
type candidate struct {
	name string
	open func(dir string) (store, error)
	scan func(dir string, f func(data []byte)) error
	// log names the files that hold the newest records.
	log string
}

// store takes batches; a batch is durable when append returns.
type store interface {
	append(batch [][]byte) error
	close() error
}

func candidates() []candidate {
	return []candidate{
		{"segments", openPlain(noHead), scanPlain(noHead), "log"},
		{"segments + head", openPlain(lazyHead), scanPlain(lazyHead), "log"},
		{"segments + synced head", openPlain(syncedHead), scanPlain(syncedHead), "log"},
		{"bbolt 1.5.0 + digest", openBolt, scanBolt, "bolt.db"},
		{"pebble 2.1.7", openPebble, scanPebble, "*.log"},
		{"etcd wal 3.6.13", openWAL, scanWAL, "wal/*.wal"},
	}
}

func byName(name string) candidate {
	for _, c := range candidates() {
		if c.name == name {
			return c
		}
	}
	panic("no candidate " + name)
}

const recordSize = 128

// record is the i-th record; its content tells which it is.
func record(i int) []byte {
	b := make([]byte, recordSize)
	for k := range b {
		b[k] = byte(i>>(8*(k%4))) ^ byte(k*37)
	}
	return b
}

func batchOf(from, n int) [][]byte {
	b := make([][]byte, n)
	for i := range b {
		b[i] = record(from + i)
	}
	return b
}

// newest is the last file whose name matches the candidate's log pattern.
func newest(c candidate, dir string) (string, error) {
	names, err := filepath.Glob(filepath.Join(dir, c.log))
	if err != nil || len(names) == 0 {
		return "", fmt.Errorf("%s: no %s in %s (%v)", c.name, c.log, dir, err)
	}
	return names[len(names)-1], nil
}
