package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// holding is the word that makes this program a job of the storm instead of the demo: it holds memory for as long as it works.
const holding = "hold"

// hold does the units of its subjob, each in pace, and has so much more memory with each of them up to most bytes; it needs all of it to its end. Told to
// end it reports what it has done and yields.
func hold(args []string) error {
	if len(args) != 3 {
		return errors.New("want: hold BYTES-A-UNIT MOST-BYTES PACE")
	}
	each, err1 := strconv.Atoi(args[0])
	most, err2 := strconv.Atoi(args[1])
	pace, err3 := time.ParseDuration(args[2])
	from, err4 := strconv.Atoi(os.Getenv("SLUICE_FROM"))
	to, err5 := strconv.Atoi(os.Getenv("SLUICE_TO"))
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return err
	}
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM)
	var held [][]byte
	has := 0
	grow := func() {
		more := min(each, most-has)
		if more <= 0 {
			return
		}
		page := make([]byte, more)
		for i := 0; i < more; i += 4096 {
			page[i] = 1 // what is not written to is no memory
		}
		held, has = append(held, page), has+more
	}
	for range from { // it goes on with what it had
		grow()
	}
	for at := from; at < to; at++ {
		grow()
		select {
		case <-time.After(pace):
		case <-told:
			os.Exit(85)
		}
		if err := report(at+1, len(held)); err != nil {
			return err
		}
	}
	return nil
}

// report says that every unit before n is complete, with the output of the last.
func report(n, parts int) error {
	name := filepath.Join(os.Getenv("SLUICE_OUTPUT_DIR"), fmt.Sprintf("unit-%04d", n-1))
	if err := os.WriteFile(name, fmt.Appendf(nil, "%d\n", parts), 0o644); err != nil {
		return err
	}
	file := os.Getenv("SLUICE_PROGRESS_FILE")
	if err := os.WriteFile(file+".new", fmt.Appendf(nil, `{"progress": %d, "checkpoint": false}`, n), 0o644); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}
