package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/arrangement"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/gang"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/joint"
	policies "sluice.dev/sluice/internal/core/policy/all"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/archive"
	"sluice.dev/sluice/internal/edge/archive/bolt"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/process"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/inventory"
	inventories "sluice.dev/sluice/internal/edge/inventory/all"
	"sluice.dev/sluice/internal/edge/journal"
	journals "sluice.dev/sluice/internal/edge/journal/all"
	"sluice.dev/sluice/internal/edge/store"
	stores "sluice.dev/sluice/internal/edge/store/all"
	"sluice.dev/sluice/internal/edge/survival"
	survivals "sluice.dev/sluice/internal/edge/survival/all"
	"sluice.dev/sluice/internal/host"
	"sluice.dev/sluice/internal/host/datadir"
	"sluice.dev/sluice/internal/host/processes"
)

// socketName is the daemon's unix socket in its data directory.
const socketName = "socket"

// openWhole puts the parts of a daemon together that has gate, zones and nodes.
func openWhole(ctx context.Context, o Options) (*Daemon, error) {
	data, err := filepath.Abs(o.DataDir)
	if err != nil {
		return nil, fmt.Errorf("--data %s: %w", o.DataDir, err)
	}
	if err = neverJoined(data); err != nil {
		return nil, err
	}
	open := func(dir string) (journal.Journal, error) {
		return journals.Open(ctx, dir, journals.Options{Spec: o.File.Journal, Depose: o.Journal.Depose,
			Notice: func(text string) { o.Log.Warn("journal", "notice", text) }})
	}
	names, err := o.names(data, open)
	if err != nil {
		return nil, err
	}
	name := names[len(names)-1]
	single, errUsers := singleUser(o, data)
	inv, note, errGPUs := inventories.Detect(ctx, o.GPUs)
	memory, said, errMemory := survivals.Detect(o.File.Airlock.Kind, "")
	var held string
	if err = errors.Join(errGPUs, errMemory); err == nil {
		held, errGPUs = o.look(ctx, inv, memory)
	}
	config, errConfig := actorConfig(o, name)
	if err = errors.Join(errUsers, errGPUs, errMemory, errConfig); err != nil {
		return nil, closing(inv, err)
	}
	actors, err := config.Build()
	if err != nil {
		return nil, closing(inv, err)
	}
	supervisor, err := findSupervisor()
	if err != nil {
		return nil, closing(inv, err)
	}
	shown, err := shownOf(&o, name, &config)
	if err != nil {
		return nil, closing(inv, err)
	}
	where, away, stored, err := openStore(ctx, o.File.Store)
	if err != nil {
		return nil, closing(inv, err)
	}
	var lead *head
	if o.Cluster != "" {
		if lead, err = openHead(&o, data, names, config.Nodes, single); err == nil && where == nil {
			where, stored, err = ownStore(data)
		}
		if err != nil {
			return nil, errors.Join(closing(inv, err), lead.close())
		}
	}
	var h *host.Host
	var isolation string
	executors := processes.New(process.Options{
		DataDir: data, ShimPath: supervisor, Logger: o.Log, SharedTmp: o.File.Subjobs.SharedTmp, Survival: memory,
		Airlock: o.File.Airlock.Lines, Watch: memory != nil, Store: where, Keep: where != nil, Away: away,
		Limits: shim.Limits{Processes: o.File.Subjobs.Processes, Scratch: int64(o.File.Subjobs.Scratch), Files: o.File.Subjobs.Files},
		User:   func(queue string) (*shim.User, error) { return userOf(h, queue, single) },
	})
	settings := host.Options{
		DataDir: data, Machine: name, Actors: actors, Config: shown,
		Names: names, Journal: open,
		Archive: func(dir string, known bool) (archive.Archive, error) { return bolt.Open(dir, known) },
		Retain:  o.File.Retention.Age, MostArchived: o.File.Retention.Jobs,
		Executor: func(e host.Env) (executor.Executor, host.Files, error) {
			x, files, failed := executors(e)
			if failed == nil {
				isolation = x.Isolation()
			}
			return x, files, failed
		},
		Inventory: inv, Ours: processes.Ours, Log: o.Log, SnapshotRecords: o.Journal.SnapshotRecords,
		Guard: guard(memory, said), About: status.About{
			Version: o.Version, Commit: o.Commit, Mechanism: o.Mechanism, Policy: config.Zones[0].Policy.Name(), Listen: o.Listen,
			SingleUser: single,
		},
	}
	if lead != nil {
		settings.Fabric, settings.Elsewhere, settings.Now = lead.links, lead.machines(), lead.clock.Now
		if len(lead.lenders.pools) > 0 {
			settings.Lenders = lead.lenders
		}
	}
	if h, err = host.Open(ctx, settings); err != nil {
		return nil, err
	}
	notes := []string{"isolation: " + isolation, "airlock: " + said, "memory: " + held, "store: " + stored}
	if note == "" {
		note = inv.Describe()
	}
	people, served, err := openUsers(data, single)
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	notes = append(notes, "slices: "+note, served)
	if spec := o.File.Journal; spec != "" {
		notes = append(notes, journalNote(spec, o.File.Store))
	}
	d := &Daemon{
		Service: tenants{h, single, o.Config, o.File.Queues}, Run: h.Run, Close: h.Close, Monitor: h.Monitor(), Notes: notes,
		Users: people, Self: ownUser(),
		Socket: filepath.Join(data, socketName),
	}
	if lead != nil {
		if err = lead.listen(&o, data, where, config.Zones[0].ID, h); err != nil {
			return nil, errors.Join(err, h.Close())
		}
		d.Machines, d.Notes = lead, append(d.Notes, lead.says()...)
		d.Service, d.Providers = borrowing{d.Service, lead.lenders}, lead.lenders
		d.Run = func(ctx context.Context) error { return lead.run(ctx, h.Run) }
		d.Close = func() error { return errors.Join(h.Close(), lead.close()) }
	}
	if note := ledBefore(data); note != "" && lead == nil {
		d.Notes = append(d.Notes, note)
	}
	if !o.Token {
		d.TokenFile = filepath.Join(data, datadir.TokenFile)
		if d.Token, err = datadir.Token(data); err != nil {
			return nil, errors.Join(err, h.Close())
		}
	}
	return d, nil
}

// guard is what can be done where memory runs out, as it was found at the start.
func guard(s survival.Survival, said string) status.Guard {
	if s == nil {
		_, why, _ := strings.Cut(said, ": ")
		return status.Guard{Level: survivals.Off, Why: why}
	}
	c := s.Capability()
	return status.Guard{Level: c.Level.String(), Kind: c.Kind, Why: c.Why}
}

// journalNote says where facts are, and what does not outlive the data directory with them.
func journalNote(spec, store string) string {
	spec, _, _ = strings.Cut(spec, "?")
	if store == "" {
		return "journal: " + spec + "; what jobs leave is in this data directory alone, unless the daemon's file has a store"
	}
	return "journal: " + spec
}

// openStore opens the store that the daemon's file names, nil if it names none, and says where things lie, and why it does not answer now
// (away).
func openStore(ctx context.Context, spec string) (s store.Store, away error, said string, err error) {
	if spec == "" {
		return nil, nil, "the data directory's own, for work directories; key store of the daemon's file names one for outputs and " +
			"checkpoints too", nil
	}
	if s, away, err = stores.OpenLater(ctx, spec); err != nil {
		return nil, nil, "", fmt.Errorf("the daemon's file: store: %w", err)
	}
	said = s.String() + ", for work directories, outputs and checkpoints"
	if away != nil {
		said += "; it is away, and nothing is started until it answers: " + away.Error()
	}
	return s, away, said, nil
}

// closing closes the inventory after an error.
func closing(inv inventory.Inventory, err error) error {
	if inv == nil {
		return err
	}
	return errors.Join(err, inv.Close())
}

// actorConfig checks what was chosen of the actors.
func actorConfig(o Options, name job.NodeID) (arrangement.Config, error) {
	p, unknown := policies.ByName(o.File.Policy)
	c, err := arrangement.Choice{
		Policy: p, Mechanism: o.Mechanism, Market: o.File.Market, Flow: o.File.Flow, Capacities: o.found.capacities, Rigid: o.Rigid,
		Starvation: o.File.Starvation, Horizon: o.Horizon, Node: name,
		Zones: o.File.Zones, ZoneNames: o.File.ZoneNames, Nodes: o.File.Nodes, Places: o.File.Places, Ends: o.File.Ends, Archive: &o.Hot,
		Airlock: o.File.Airlock.Lines, Memory: o.found.memory, Address: o.ownAddress(), Ports: cmp.Or(o.File.Ports, gang.DefaultPorts()),
	}.Config()
	if err = errors.Join(unknown, err); err != nil {
		return arrangement.Config{}, errkind.Errorf(errkind.Invalid, "%w", err)
	}
	return c, nil
}

// look at the slices: they define the size classes where tickets search, and the machine's memory is counted for them; returns what is
// printed of it at the start.
func (o *Options) look(ctx context.Context, inv inventory.Inventory, memory survival.Survival) (held string, err error) {
	all, err := inv.Slices(ctx)
	if err != nil {
		return "", fmt.Errorf("look for the slices: %w", err)
	}
	o.found.memory, held = heldAgainst(&o.File.Airlock, memory, max(1, o.File.Zones, o.File.Nodes), all)
	if o.Mechanism != arrangement.Laminar {
		return held, nil
	}
	var list []quantity.Amount
	for i := range all {
		list = append(list, all[i].Capacity[trp.Memory])
	}
	o.found.capacities = flow.Levels(list)
	return held, nil
}

// shownOf is the configuration as tapes keep it: what the same actors are made of.
func shownOf(o *Options, name job.NodeID, config *arrangement.Config) ([]byte, error) {
	shown := map[string]any{
		"mechanism": o.Mechanism, "market": config.Zones[0].Market, "policy": config.Zones[0].Policy.Name(), "rigid": o.Rigid,
		"starve": o.File.Starvation, "horizon": o.Horizon.String(),
		"gpus": o.GPUs, "node": name, "archive": config.Gate.Archive, "ends": o.File.Ends, "zones": o.File.Zones, "nodes": o.File.Nodes,
		"places": o.File.Places, "address": o.ownAddress(), "ports": cmp.Or(o.File.Ports, gang.DefaultPorts()),
	}
	if o.File.ZoneNames != nil {
		shown["zoneNames"] = o.File.ZoneNames
	}
	if o.File.Airlock.Lines != (airlock.Config{}) {
		shown["airlock"] = o.File.Airlock.Lines
	}
	if o.found.memory.Counted() {
		shown["memory"] = o.found.memory
	}
	if o.found.capacities != nil {
		shown["flow"], shown["capacities"] = o.File.Flow, o.found.capacities
	}
	return json.Marshal(shown)
}

// findSupervisor looks for the supervisor's program beside our own, then in PATH.
func findSupervisor() (string, error) {
	const program = "sluice-shim"
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find %s: %w", program, err)
	}
	path := filepath.Join(filepath.Dir(self), program)
	if info, err := os.Stat(path); err == nil && info.Mode()&0o111 != 0 {
		return path, nil
	}
	return "", errkind.Errorf(errkind.Unavailable, "the supervisor's program %s is not there: it is built and installed beside sluice "+
		"(make build)", path)
}

// heldAgainst returns the memory that starts are checked against, with the chance that the peaks of subjobs together exceed it, and a note
// for the start. By default it is the memory below the severe line of the smallest control group around the daemon, or of the machine, and
// not counted where a slice is larger than its node's part of it: such a slice is for trials, whose jobs never use what they declare.
// Slices with a device take none of it.
func heldAgainst(o *config.Airlock, s survival.Survival, nodes int, list []protocol.Slice) (c joint.Config, said string) {
	most, hosted := quantity.Amount(0), 0
	for i := range list {
		if list[i].Device == "" {
			hosted++
			most = max(most, list[i].Capacity[trp.Memory])
		}
	}
	switch {
	case o.Uncounted:
		return c, "not counted: key airlock.memory of the daemon's file says so"
	case hosted == 0:
		return c, "not counted: every slice has a device with memory of its own"
	}
	c.Memory, c.Excess = o.Memory, o.Excess
	if c.Memory == 0 {
		var m survival.Memory
		if s == nil {
			return joint.Config{}, "not counted: nobody looks at this machine's memory (key airlock.kind of the daemon's file)"
		}
		if err := s.Sense(0, &m); err != nil || m.Least <= 0 {
			return joint.Config{}, fmt.Sprintf("not counted: how much there is can't be read: %v", err)
		}
		lines := o.Lines.WithDefaults()
		c.Memory = quantity.Amount(quantity.MulDiv(int64(m.Least), lines.Severe, 1000))
		if part := c.Memory / quantity.Amount(nodes); most > part {
			return joint.Config{}, fmt.Sprintf("not counted: a slice has %s, and its node %s of this machine's memory; key "+
				"airlock.memory of the daemon's file has it counted all the same",
				quantity.FormatBytes(most), quantity.FormatBytes(part))
		}
	}
	c = c.WithDefaults()
	return c, fmt.Sprintf("%s for the peaks of %d slices, which may pass it with a chance of %g", quantity.FormatBytes(c.Memory), hosted,
		float64(c.Excess)/1e6)
}
