// Command peers places the same asks with Sluice and with schedulers of others, one after another in one run, and writes a table into
// docs/benchmarks.md. It is a module of its own, so that what peers need is none of Sluice's dependencies.
//
//	make peers
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
)

func main() {
	nodes := flag.Int("nodes", 5000, "nodes of four slices; a multiple of 100")
	rounds := flag.Int("rounds", 3, "how often each contestant runs, all by turns")
	write := flag.String("write", "", "the page that the table is written into")
	child := flag.Int("child", -1, "only run the contestant of this number, and print what it measured")
	flag.Parse()
	if err := run(*nodes, *rounds, *write, *child); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func run(nodes, rounds int, page string, child int) error {
	if child >= 0 {
		r, err := contestants[child].run(nodes)
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(r)
	}
	t, err := compete(nodes, rounds)
	if err != nil {
		return err
	}
	t.markdown(os.Stdout)
	if page == "" {
		return nil
	}
	return t.keep(page)
}
