// Package program is what the commands of benches have in common: they are told to end, write profiles, and say where they ran.
package program

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/pprof"
	"strings"
	"syscall"
)

// Main is the main function of a bench: it runs until it is done, or told to end.
func Main(name string, run func(context.Context) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// Profiled does something under a profile of the processor, which is written to a file; to none if it has no name.
func Profiled(file string, do func() error) (err error) {
	if file == "" {
		return do()
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err = pprof.StartCPUProfile(f); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	return do()
}

// Processor is the name of this machine's processor, empty where its system does not say, and how many of its cores there are.
func Processor() (model string, cores int) {
	text, _ := os.ReadFile("/proc/cpuinfo") // without it there is no name
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(key) {
		case "model name":
			model = strings.TrimSpace(value)
		case "processor":
			cores++
		}
	}
	return model, cores
}
