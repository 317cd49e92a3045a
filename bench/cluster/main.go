// Command cluster measures the host at the size of a cluster: one node whose slices are devices of thousands of machines, thousands of
// jobs, subjobs that are models (executor kind fake). What it tells is what the operator of a cluster (docs/adr/0050-kubernetes.md) has for
// the rest of it: the time of a step, memory, how fast jobs are taken and subjobs started, how long a restart takes.
//
//	go run ./bench/cluster
//	go run ./bench/cluster -mechanism jasda -machines 500 -jobs 1000
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"sluice.dev/sluice/bench/program"
)

// settings are what was asked for.
type settings struct {
	mechanism      string
	machines, jobs int
	settle, rest   time.Duration
}

func main() { program.Main("cluster", run) }

func run(ctx context.Context) error {
	var s settings
	flag.StringVar(&s.mechanism, "mechanism", "sja", "sja or jasda")
	flag.IntVar(&s.machines, "machines", 5000, "machines of one GPU in seven slices each")
	flag.IntVar(&s.jobs, "jobs", 10_000, "jobs that are submitted")
	flag.DurationVar(&s.settle, "for", 30*time.Second, "how long subjobs run after the last submission")
	flag.DurationVar(&s.rest, "rest", 10*time.Second, "how long they run after the restart")
	profile := flag.String("profile", "", "write a profile of the processor to this file")
	flag.Parse()
	if s.machines < 1 || s.jobs < 1 || flag.NArg() > 0 {
		return errors.New("-machines and -jobs are at least 1, and there are no other arguments")
	}
	return program.Profiled(*profile, func() error { return s.measure(ctx) })
}

// measure opens the host, gives it its jobs, and opens it again.
func (s settings) measure(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "sluice-cluster-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	c := &cluster{settings: s, dir: dir}

	begin := time.Now()
	if err := c.up(ctx); err != nil {
		return err
	}
	fmt.Printf("open with %d slices: %s\n", 7*s.machines, since(begin))
	begin = time.Now()
	if err := c.submit(ctx); err != nil {
		return errors.Join(err, c.down())
	}
	took := time.Since(begin)
	fmt.Printf("%d jobs submitted in %s: %.0f a second; %d subjobs run by then\n", s.jobs, took.Round(time.Millisecond),
		float64(s.jobs)/took.Seconds(), c.running())
	c.wait(ctx, s.settle)
	c.tell(time.Since(begin))

	begin = time.Now()
	if err := c.down(); err != nil {
		return err
	}
	fmt.Printf("closed: %s\n", since(begin))
	running := c.running()
	begin = time.Now()
	if err := c.up(ctx); err != nil {
		return err
	}
	fmt.Printf("open again with %d subjobs running: %s\n", running, since(begin))
	if err := c.answers(ctx); err != nil {
		return errors.Join(err, c.down())
	}
	fmt.Printf("answers what stands: %s\n", since(begin))
	begin = time.Now()
	c.wait(ctx, s.rest)
	c.tell(time.Since(begin))
	return c.down()
}

func since(t time.Time) time.Duration { return time.Since(t).Round(time.Millisecond) }
