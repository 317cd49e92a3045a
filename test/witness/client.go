package witness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

const (
	// callTime is how long one call of the client may take.
	callTime = 10 * time.Second
	// pause is between two looks of Until.
	pause = 200 * time.Millisecond
)

// Client calls a head as people do, by the command, and submits jobs whose programs are witnesses.
type Client struct {
	// Program is the command, Socket the head's.
	Program, Socket string
	// Dir has job files; Witnesses is the folder of witnesses.
	Dir, Witnesses string
	// Units that each job does. AtOnce is how many jobs are not over at any time.
	Units  int64
	AtOnce int
	// Every other job is cut into short leases and the others into longer ones, by how many it may have at once: Many, Few. Strikes fall
	// into leases and outlast them.
	Many, Few int
	// Memory of each job, as job files have it.
	Memory string
	// Worker is the program of subjobs, which calls Work where WorkerVariable is set; empty: this one.
	Worker string

	mu   sync.Mutex
	jobs []string
}

// Jobs that were accepted.
func (c *Client) Jobs() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.jobs...)
}

// Sluice calls the command once.
func (c *Client) Sluice(args ...string) (string, error) {
	ctx, stop := context.WithTimeout(context.Background(), callTime)
	defer stop()
	out, err := exec.CommandContext(ctx, c.Program, append(args, "--server", "unix:"+c.Socket)...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("sluice %s: %w: %s", strings.Join(args, " "), err, exit.Stderr)
	}
	return string(out), err
}

// Insist calls the command until it succeeds, for a minute.
func (c *Client) Insist(args ...string) (out string, err error) {
	err = Until("sluice "+args[0], time.Minute, func() (err error) { out, err = c.Sluice(args...); return err })
	return out, err
}

// Until waits until a condition holds; it says what is in the way.
func Until(what string, limit time.Duration, holds func() error) error {
	for end := time.Now().Add(limit); ; time.Sleep(pause) {
		err := holds()
		if err == nil {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%v have passed until %s: %w", limit, what, err)
		}
	}
}

// Unfinished lists the accepted jobs that are not COMPLETED, with why.
func (c *Client) Unfinished() ([]string, error) {
	text, err := c.Sluice("jobs", "--all", "-o", "json")
	if err != nil {
		return nil, err
	}
	var list []struct{ Name, State, Reason string }
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("sluice jobs: %w", err)
	}
	states := map[string]string{}
	for _, j := range list {
		if states[j.Name] = ""; j.State != "COMPLETED" {
			states[j.Name] = j.State + ": " + j.Reason
		}
	}
	var all []string
	for _, name := range c.Jobs() {
		if why, ok := states[name]; !ok {
			all = append(all, name+": the head does not know it")
		} else if why != "" {
			all = append(all, name+": "+why)
		}
	}
	return all, nil
}

// Submit goes on to submit jobs, so that some always wait, until ctx is done.
func (c *Client) Submit(ctx context.Context) error {
	worker := c.Worker
	if worker == "" {
		var err error
		if worker, err = os.Executable(); err != nil {
			return err
		}
	}
	for n := 0; ctx.Err() == nil; {
		waiting, err := c.Unfinished()
		if err != nil || len(waiting) >= c.AtOnce {
			select {
			case <-ctx.Done():
			case <-time.After(500 * time.Millisecond):
			}
			continue
		}
		name := fmt.Sprintf("j%d", n)
		path := filepath.Join(c.Dir, name+".yaml")
		if err := os.WriteFile(path, []byte(c.job(name, n, worker)), 0o644); err != nil {
			return err
		}
		if _, err := c.Sluice("submit", "-f", path); err == nil { // else once more: it is the same job
			c.mu.Lock()
			c.jobs = append(c.jobs, name)
			c.mu.Unlock()
			n++
		}
	}
	return nil
}

// job is the file of a job. Strikes are signals that Sluice did not send, so that they count as failures of the job.
func (c *Client) job(name string, n int, program string) string {
	work, env := "", WorkerVariable+": "+c.Witnesses
	switch n % 4 {
	case 0, 2:
		work = fmt.Sprintf("items: {total: %d, perItem: %v, grid: %d, parallelism: %d}", c.Units, Pace, Grid, c.Many)
	case 1:
		work = fmt.Sprintf("items: {total: %d, perItem: %v, grid: %d, parallelism: %d}", c.Units, Pace, Grid, c.Few)
	default:
		work = fmt.Sprintf("steps: {total: %d, perStep: %v, every: %d, restore: 100ms, checkpoint: 50ms}\n  tauMin: 1s", c.Units, Pace,
			Grid)
		env += ", " + StepsVariable + `: "1"`
	}
	return fmt.Sprintf(`apiVersion: sluice.dev/v1alpha1
kind: Job
metadata: {name: %s}
spec:
  %s
  startup: 300ms
  memory: %s
  maxFailures: 1000
  grace: 200ms
  env: {%s}
  command: [%q]
`, name, work, c.Memory, env, program)
}

// outputs of a job that are committed, as anybody finds them: the ranges, and the folders at the head that they name.
func (c *Client) outputs(job string) ([]Committed, error) {
	text, err := c.Insist("output", job, "-o", "json")
	if err != nil {
		return nil, err
	}
	var rows []struct {
		Subjob, Path string
		From, To     int64
	}
	if err := json.Unmarshal([]byte(text), &rows); err != nil {
		return nil, fmt.Errorf("sluice output %s: %w", job, err)
	}
	all := make([]Committed, len(rows))
	for i, r := range rows {
		all[i] = Committed{r.Subjob, r.From, r.To, nil}
		if r.Path == "" {
			continue // nothing was left, which is wrong, as each of these subjobs writes something
		}
		data, err := os.ReadFile(filepath.Join(r.Path, unitsFile))
		if err != nil {
			return nil, fmt.Errorf("the output of subjob %s: %w", r.Subjob, err)
		}
		all[i].Units = parseUnits(data)
	}
	return all, nil
}

// History of a job, from its outputs and its witness.
func (c *Client) History(job string) History {
	output, err := c.outputs(job)
	if err != nil {
		return History{Wrong: []string{err.Error()}}
	}
	data, err := os.ReadFile(filepath.Join(c.Witnesses, job))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return History{Wrong: []string{err.Error()}}
	}
	return Judge(job, c.Units, output, parseUnits(data))
}
