package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sluice.dev/sluice/test/witness"
)

const (
	// joined is how many machines there are besides the head.
	joined = 9
	// unitsOfAJob is what each job does, and atOnce how many jobs are not over at any time. With manyAtOnce a job is cut into leases of
	// some 2 s.
	unitsOfAJob, atOnce   = 400, 6
	manyAtOnce, fewAtOnce = 8, 2
)

// world is the cluster: its machines, the head first, and the jobs that were submitted.
type world struct {
	dir, bin string
	network  *network
	machines []*machine
	client   *witness.Client
}

// newWorld starts the cluster. What there is of it is returned with an error, too.
func newWorld(dir, bin, groups string, seed uint64) (*world, error) {
	c := &world{dir: dir, bin: bin, network: newNetwork(joined+1, seed)}
	witnesses := filepath.Join(dir, "witnesses")
	if err := os.Mkdir(witnesses, 0o777); err != nil {
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
	c.client = &witness.Client{
		Program: filepath.Join(bin, "sluice"), Socket: filepath.Join(head.data, "socket"), Dir: dir, Witnesses: witnesses,
		Units: unitsOfAJob, AtOnce: atOnce, Many: manyAtOnce, Few: fewAtOnce, Memory: "64Mi",
	}
	head.args = []string{filepath.Join(bin, "sluice"), "up", "--data", head.data, "--name", head.name, "--listen", local,
		"--cluster", headAddress(), "--gpus", "sim:custom,mem=256Mi", "--snapshot-records", "500"}
	if err := head.start(); err != nil {
		return c, err
	}
	if err := witness.Until("the head answers", time.Minute, func() error { _, err := c.nodes(); return err }); err != nil {
		return c, err
	}
	for _, m := range c.machines[1:] {
		if err := c.join(m); err != nil {
			return c, err
		}
	}
	return c, witness.Until("all machines are ready", time.Minute, c.allReady)
}

// join has a machine join by a new token.
func (c *world) join(m *machine) error {
	token, err := c.client.Insist("token", "create", "-q", "--name", m.name)
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

// nodes is why each node of the cluster is not ready, "" if it is.
func (c *world) nodes() (map[string]string, error) {
	text, err := c.client.Sluice("nodes", "-o", "json")
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
	text, err := c.client.Sluice("nodes", "-o", "json")
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
