package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

const (
	// joined is how many machines there are besides the head.
	joined = 9
	// unitsOfAJob is what each job does, and atOnce how many jobs are not over at any time.
	unitsOfAJob, atOnce = 400, 6
	// Every other job is cut into leases of some 2 s and the others into longer ones, by how many it may have at once: strikes fall into
	// leases and outlast them.
	manyAtOnce, fewAtOnce = 8, 2
	// callTime is how long one call of the client may take.
	callTime = 10 * time.Second
)

// world is the cluster: its machines, the head first, and the jobs that were submitted.
type world struct {
	dir, bin, witnesses string
	network             *network
	machines            []*machine

	mu sync.Mutex
	// jobs that were accepted.
	jobs []string
}

// newWorld starts the cluster. What there is of it is returned with an error, too.
func newWorld(dir, bin, groups string, seed uint64) (*world, error) {
	c := &world{dir: dir, bin: bin, witnesses: filepath.Join(dir, "witnesses"), network: newNetwork(joined+1, seed)}
	if err := os.Mkdir(c.witnesses, 0o777); err != nil {
		return c, err
	}
	for i := range joined + 1 {
		name := fmt.Sprintf("m%d", i)
		if i == 0 {
			name = "head"
		}
		m, err := newMachine(c.network, i, name, dir, groups)
		if m != nil {
			c.machines = append(c.machines, m)
		}
		if err != nil {
			return c, err
		}
	}
	head := c.machines[0]
	head.args = []string{filepath.Join(bin, "sluice"), "up", "--data", head.data, "--name", head.name, "--listen", local,
		"--cluster", headAddress(), "--gpus", "sim:custom,mem=256Mi", "--snapshot-records", "500"}
	if err := head.start(); err != nil {
		return c, err
	}
	if err := c.until("the head answers", time.Minute, func() error { _, err := c.nodes(); return err }); err != nil {
		return c, err
	}
	for _, m := range c.machines[1:] {
		if err := c.join(m); err != nil {
			return c, err
		}
	}
	return c, c.until("all machines are ready", time.Minute, c.allReady)
}

// join has a machine join by a new token.
func (c *world) join(m *machine) error {
	token, err := c.insist("token", "create", "-q", "--name", m.name)
	if err != nil {
		return err
	}
	m.args = []string{filepath.Join(c.bin, "sluice"), "join", headAddress(), "--token", strings.TrimSpace(token), "--name", m.name,
		"--data", m.data, "--listen", local, "--gpus", "sim:custom,mem=512Mi+256Mi"}
	return m.start()
}

// close ends all of it.
func (c *world) close() {
	for _, m := range c.machines {
		m.off()
	}
	c.network.close()
}

// sluice calls the client at the head.
func (c *world) sluice(args ...string) (string, error) {
	ctx, stop := context.WithTimeout(context.Background(), callTime)
	defer stop()
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, "sluice"), append(args, "--server", "unix:"+filepath.Join(c.machines[0].data,
		"socket"))...)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("sluice %s: %w: %s", strings.Join(args, " "), err, exit.Stderr)
	}
	return string(out), err
}

// insist calls the client until it succeeds.
func (c *world) insist(args ...string) (out string, err error) {
	err = c.until("sluice "+args[0], time.Minute, func() (err error) { out, err = c.sluice(args...); return err })
	return out, err
}

// until waits until a condition holds; it says what is in the way.
func (c *world) until(what string, limit time.Duration, holds func() error) error {
	for end := time.Now().Add(limit); ; time.Sleep(200 * time.Millisecond) {
		err := holds()
		if err == nil {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%v have passed until %s: %w", limit, what, err)
		}
	}
}

// nodes is why each node of the cluster is not ready, "" if it is.
func (c *world) nodes() (map[string]string, error) {
	text, err := c.sluice("nodes", "-o", "json")
	if err != nil {
		return nil, err
	}
	var list []struct {
		Name, State, Why string
		Slices           int
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("sluice nodes: %w", err)
	}
	all := map[string]string{}
	for _, n := range list {
		if all[n.Name] = ""; n.State != "ready" || n.Slices == 0 {
			all[n.Name] = fmt.Sprintf("%s with %d slices: %s", n.State, n.Slices, n.Why)
		}
	}
	return all, nil
}

// clocks is by how much the head measures that the machines' clocks are wrong, from the least to the most.
func (c *world) clocks() (least, most time.Duration, err error) {
	text, err := c.sluice("nodes", "-o", "json")
	if err != nil {
		return 0, 0, err
	}
	var list []struct{ ClockOffsetSeconds float64 }
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return 0, 0, fmt.Errorf("sluice nodes: %w", err)
	}
	for _, n := range list {
		off := time.Duration(n.ClockOffsetSeconds * float64(time.Second)).Round(time.Millisecond)
		least, most = min(least, off), max(most, off)
	}
	return least, most, nil
}

// ready says why a machine does not run what it is given.
func (c *world) ready(m *machine) error {
	all, err := c.nodes()
	if err != nil {
		return err
	}
	switch why, ok := all[m.name]; {
	case !ok:
		return fmt.Errorf("the head knows no node %s", m.name)
	case why != "":
		return fmt.Errorf("node %s is %s", m.name, why)
	}
	return nil
}

func (c *world) allReady() (err error) {
	for _, m := range c.machines {
		err = errors.Join(err, c.ready(m))
	}
	return err
}

// unfinished lists the jobs that are not COMPLETED, with why.
func (c *world) unfinished() ([]string, error) {
	text, err := c.sluice("jobs", "--all", "-o", "json")
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
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for _, name := range c.jobs {
		if why, ok := states[name]; !ok {
			all = append(all, name+": the head does not know it")
		} else if why != "" {
			all = append(all, name+": "+why)
		}
	}
	return all, nil
}

// submit goes on to submit jobs, so that some always wait, until ctx is done.
func (c *world) submit(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for n := 0; ctx.Err() == nil; {
		waiting, err := c.unfinished()
		if err != nil || len(waiting) >= atOnce {
			select {
			case <-ctx.Done():
			case <-time.After(500 * time.Millisecond):
			}
			continue
		}
		name := fmt.Sprintf("j%d", n)
		path := filepath.Join(c.dir, name+".yaml")
		if err := os.WriteFile(path, []byte(c.job(name, n, self)), 0o644); err != nil {
			return err
		}
		if _, err := c.sluice("submit", "-f", path); err == nil { // else once more: it is the same job
			c.mu.Lock()
			c.jobs = append(c.jobs, name)
			c.mu.Unlock()
			n++
		}
	}
	return nil
}

// job is the file of a job. Strikes are signals that Sluice did not send, so that they count as failures of the job.
func (c *world) job(name string, n int, program string) string {
	work, env := "", workerVariable+": "+c.witnesses
	switch n % 4 {
	case 0, 2:
		work = fmt.Sprintf("items: {total: %d, perItem: %v, grid: %d, parallelism: %d}", unitsOfAJob, pace, grid, manyAtOnce)
	case 1:
		work = fmt.Sprintf("items: {total: %d, perItem: %v, grid: %d, parallelism: %d}", unitsOfAJob, pace, grid, fewAtOnce)
	default:
		work = fmt.Sprintf("steps: {total: %d, perStep: %v, every: %d, restore: 100ms, checkpoint: 50ms}\n  tauMin: 1s", unitsOfAJob, pace,
			grid)
		env += ", " + stepsVariable + `: "1"`
	}
	return fmt.Sprintf(`apiVersion: sluice.dev/v1alpha1
kind: Job
metadata: {name: %s}
spec:
  %s
  startup: 300ms
  memory: 64Mi
  maxFailures: 1000
  grace: 200ms
  env: {%s}
  command: [%q]
`, name, work, env, program)
}
