// Command gpu tries Sluice on a machine with an NVIDIA GPU, and says what held. `make gpu` builds it into a bundle, dist/gpu, with
// sluice, its supervisor and the programs of the trials: a folder that runs on a bare machine with a driver, Python and PyTorch 2,
// without network, as root or not. It changes no setting of the GPU. docs/gpu.md says what each trial shows.
//
//	dist/gpu/run                                       exit status 0: all held; 1: something did not; 3: no GPU
//	dist/gpu/run -only memory,training -out results
//	go run ./bench/gpu -check dist/gpu                 the bundle's size, and which C library it needs
//	go run ./bench/gpu -page docs/gpu.md -results gpu-results/results.json
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Exit statuses.
const (
	held    = 0
	heldNot = 1
	noGPU   = 3
)

// settings are what was asked for.
type settings struct {
	// bundle is the folder of run, sluice, sluice-shim and programs, absolute; out is where results go.
	bundle, out string
	// python is the interpreter; empty: the first that has PyTorch.
	python string
	// pretended is the folder of a rehearsal's driver (docs/gpu.md); empty: this is no rehearsal.
	pretended string
	// budget bounds the whole run.
	budget time.Duration
	// only these trials; empty: all.
	only []string
	pace pace
}

// pace is how long the parts of trials last.
type pace struct {
	// hold is how long memory is held to be seen, look how often the witness looks.
	hold, look time.Duration
	// training is the length of the uncut loop.
	training time.Duration
	// gap of the host, besides the start of what fills it; its notice and bursts, so many of them, at so many requests a second.
	gap, notice, burst time.Duration
	bursts             int
	rate               float64
	// starts is how often a cold start is measured.
	starts int
}

func full() pace {
	return pace{hold: 4 * time.Second, look: 10 * time.Millisecond, training: 15 * time.Second, gap: 16 * time.Second,
		notice: 5 * time.Second, burst: 8 * time.Second, bursts: 2, rate: 100, starts: 3}
}

// rehearsed is short, for a rehearsal measures nothing. The notice stays longer than a job's grace.
func rehearsed() pace {
	return pace{hold: 2500 * time.Millisecond, look: 20 * time.Millisecond, training: 4 * time.Second, gap: 5 * time.Second,
		notice: 4 * time.Second, burst: time.Second, bursts: 2, rate: 50, starts: 1}
}

func main() {
	var s settings
	check := flag.String("check", "", "only say how large this bundle is and which C library it needs, and fail if that is too much")
	write := flag.String("page", "", "only put -results between the marks of this page")
	results := flag.String("results", "", "a results.json of an earlier run, for -page")
	only := flag.String("only", "", "which trials, with commas between: "+strings.Join(names(), ","))
	flag.StringVar(&s.out, "out", os.Getenv("OUT"), "the folder for results.json and gpu.md (default: $OUT, else gpu-results)")
	flag.StringVar(&s.python, "python", "", "the Python that has PyTorch (default: python3, else /usr/bin/python3)")
	flag.StringVar(&s.pretended, "rehearse", "", "rehearse with the pretended driver in this folder; nothing of it is a figure")
	flag.DurationVar(&s.budget, "budget", 8*time.Minute+15*time.Second, "how long all trials may take; to end takes up to 20s more")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	code, err := held, error(nil)
	switch {
	case *check != "":
		err = checkBundle(*check, os.Stdout)
	case *write != "":
		err = writePage(*write, *results)
	default:
		if *only != "" {
			s.only = strings.Split(*only, ",")
		}
		code, err = start(ctx, &s)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "gpu: %v\n", err)
		code = max(code, heldNot)
	}
	stop()
	os.Exit(code)
}

// start finds the bundle around this program, and runs it.
func start(ctx context.Context, s *settings) (int, error) {
	own, err := os.Executable()
	if err != nil {
		return heldNot, err
	}
	s.bundle = filepath.Dir(own)
	if s.out == "" {
		s.out = "gpu-results"
	}
	if s.out, err = filepath.Abs(s.out); err != nil {
		return heldNot, err
	}
	if s.budget <= 0 || s.budget > 9*time.Minute {
		return heldNot, fmt.Errorf("-budget %v: want more than 0s and at most 9m", s.budget)
	}
	s.pace = full()
	if s.pretended != "" {
		s.pace = rehearsed()
	}
	return run(ctx, s, os.Stdout)
}

// wanted are the trials that were asked for, in their order.
func wanted(only []string) (some []trial, err error) {
	asked := map[string]bool{}
	for _, name := range only {
		asked[strings.TrimSpace(name)] = true
	}
	for _, t := range trials() {
		if len(only) == 0 || asked[t.name] {
			some = append(some, t)
		}
		delete(asked, t.name)
	}
	var errs []error
	for name := range asked {
		errs = append(errs, fmt.Errorf("-only %q: there is no such trial; want some of %s", name, strings.Join(names(), ",")))
	}
	return some, errors.Join(errs...)
}

func names() (all []string) {
	for _, t := range trials() {
		all = append(all, t.name)
	}
	return all
}
