package cluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"sluice.dev/sluice/test/witness"
)

// lasting is how long what is stopped stays so at least: longer than most leases of these jobs, and than a link may be silent.
const lasting = 5 * time.Second

// strike is one of a run, drawn before it begins.
type strike struct {
	kind kind
	// target is the number of the machine, 0 for the head.
	target int
	// long is how long it lasts, short a pause, such as between an end and a new start.
	long, short time.Duration
}

// kind is a way to strike.
type kind struct {
	name string
	// at says what it is for: only the head, only a machine that has joined, or both.
	at where
	// ends: the daemon may end by itself.
	ends bool
	do   func(c *world, m *machine, s strike) (said string, err error)
}

type where int

const (
	onHead where = iota
	onMachine
	anywhere
)

func kinds() []kind {
	return []kind{
		{name: "head killed", at: onHead, do: killed},
		{name: "head stopped", at: onHead, do: stopped},
		{name: "head's disk full", at: onHead, ends: true, do: filled},
		{name: "daemon killed", at: onMachine, do: killed},
		{name: "daemon stopped", at: onMachine, do: stopped},
		{name: "power cut", at: onMachine, do: cut},
		{name: "disk full", at: onMachine, ends: true, do: filled},
		{name: "data lost", at: onMachine, do: wiped},
		{name: "data old", at: onMachine, ends: true, do: restored},
		{name: "link mute", at: anywhere, do: link(fault{mute: true})},
		{name: "link deaf", at: anywhere, do: link(fault{deaf: true})},
		{name: "link cut", at: anywhere, do: link(fault{mute: true, deaf: true})},
		{name: "5% lost", at: anywhere, do: link(fault{loss: .05})},
		{name: "200 ms late", at: anywhere, do: link(fault{delay: 200 * time.Millisecond})},
	}
}

// only are the kinds with these names, separated by commas; if there are none, all.
func only(names string) ([]kind, error) {
	return witness.Only(kinds(), func(k kind) string { return k.name }, names)
}

// draw is the strikes of a seed: each of these kinds as often as the others, in a random order.
func draw(list []kind, seed uint64, n int) (all []strike) {
	rng := rand.New(rand.NewPCG(seed, 1))
	for len(all) < n {
		rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		for _, k := range list[:min(len(list), n-len(all))] {
			s := strike{kind: k, target: 1 + rng.IntN(joined), short: time.Duration(rng.Int64N(int64(2 * time.Second)))}
			if k.at == onHead || k.at == anywhere && rng.IntN(4) == 0 {
				s.target = 0
			}
			few := rng.Float64() // more short ones than long ones, from 3 to 20 s
			s.long = 3*time.Second + time.Duration(few*few*few*float64(17*time.Second))
			all = append(all, s)
		}
	}
	return all
}

func killed(_ *world, m *machine, s strike) (string, error) {
	err := m.kill()
	time.Sleep(s.short)
	return "", errors.Join(err, m.start())
}

func stopped(_ *world, m *machine, s strike) (string, error) {
	err := m.stop()
	time.Sleep(lasting + 3*s.short)
	return "", errors.Join(err, m.goOn())
}

func cut(_ *world, m *machine, s strike) (string, error) {
	m.off()
	time.Sleep(s.short)
	return "", errors.Join(m.on(), m.start())
}

func filled(_ *world, m *machine, s strike) (string, error) {
	room, err := m.fill()
	if err != nil {
		return "", err
	}
	time.Sleep(3*time.Second + 2*s.short)
	return "", room()
}

func link(f fault) func(*world, *machine, strike) (string, error) {
	return func(c *world, m *machine, s strike) (string, error) {
		heal := c.network.fail(m.number, f)
		time.Sleep(s.long)
		heal()
		return "", nil
	}
}

// wiped: the machine loses its data, is removed, and joins by a new token under its name.
func wiped(c *world, m *machine, _ strike) (string, error) {
	m.off()
	return "", errors.Join(m.clear(), m.on(), c.again(m))
}

// again removes a machine, and has it join anew. Until it has joined its daemon may end where the head can't be reached or writes nothing.
func (c *world) again(m *machine) error {
	if _, err := c.client.Insist("nodes", "remove", m.name, "--yes"); err != nil {
		return err
	}
	if err := c.join(m); err != nil {
		return err
	}
	return witness.Until("it has joined again", time.Minute, func() error { return c.ready(m) })
}

// restored: the machine's data becomes what it was some leases ago, as after a backup was put back. It must be refused; then it is removed,
// loses its data, and joins anew.
func restored(c *world, m *machine, s strike) (string, error) {
	m.off()
	old := filepath.Join(m.dir, "old")
	if out, err := exec.Command("cp", "-a", m.data, old).CombinedOutput(); err != nil {
		return "", fmt.Errorf("copying: %w: %s", err, out)
	}
	defer func() { _ = os.RemoveAll(old) }()
	if err := errors.Join(m.on(), m.start(), witness.Until("it runs again", time.Minute, func() error { return c.ready(m) })); err != nil {
		return "", err
	}
	time.Sleep(lasting + s.short)
	m.off()
	if err := m.clear(); err != nil {
		return "", err
	}
	if out, err := exec.Command("cp", "-a", old+"/.", m.data).CombinedOutput(); err != nil {
		return "", fmt.Errorf("putting it back: %w: %s", err, out)
	}
	if err := errors.Join(m.on(), m.start()); err != nil {
		return "", err
	}
	why := witness.Until("it is ready with old data", 20*time.Second, func() error { return c.ready(m) })
	if why == nil {
		return "", errors.New("it goes on with its old data")
	}
	m.off()
	return "it is refused and joins anew: " + why.Error(), errors.Join(m.clear(), m.on(), c.again(m))
}
