package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"connectrpc.com/connect"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
)

// isolation says how far subjobs are contained on this machine.
func isolation(ctx context.Context, w *world) ([]figure, error) {
	if err := w.upOnOne(ctx); err != nil {
		return nil, err
	}
	about, err := w.d.About(ctx, connect.NewRequest(&pb.AboutRequest{}))
	if err != nil {
		return nil, err
	}
	a := about.Msg.About
	seen := []figure{fig("containment", "%s", a.Isolation), fig("inventory", "%s", a.Inventory), fig("single user", "%v", a.SingleUser)}
	if a.Trouble != "" {
		return seen, fmt.Errorf("the daemon has trouble: %s", a.Trouble)
	}
	if a.Isolation == "" {
		return seen, errors.New("the daemon does not say how far subjobs are contained")
	}
	return seen, nil
}

// inventoryTrial holds the slices of all GPUs against nvidia-smi.
func inventoryTrial(ctx context.Context, w *world) ([]figure, error) {
	smi, err := exec.LookPath("nvidia-smi")
	if err != nil {
		smi = "/usr/local/nvidia/bin/nvidia-smi" // where containers have it
	}
	out, err := exec.CommandContext(ctx, smi, "-q", "-x").Output()
	if err != nil {
		return nil, said("nvidia-smi -q -x", err)
	}
	driver, cards, err := readSMI(out)
	if err != nil {
		return nil, err
	}
	if err = w.up("nvml"); err != nil {
		return nil, err
	}
	list, err := w.slices(ctx)
	if err != nil {
		return nil, err
	}
	seen := []figure{fig("driver, by nvidia-smi", "%s", driver)}
	for _, c := range cards {
		seen = append(seen, fig("GPU "+c.uuid, "%s, %d MiB of which %d are the driver's, MIG %v with %d instances", c.name, c.total,
			max(0, c.reserved), c.mig, c.instances))
	}
	for _, s := range list {
		seen = append(seen, fig("slice "+s.Id, "%s, %s, %s", s.Model, mebibytes(s.MemoryBytes), s.Device))
	}
	return seen, sameGPUs(cards, list)
}

// sameGPUs says where the slices are not what nvidia-smi has.
func sameGPUs(cards []card, list []*pb.Slice) error {
	var errs []error
	whole, cut := 0, 0
	for _, c := range cards {
		if c.mig {
			cut += c.instances
			continue
		}
		whole++
		var found *pb.Slice
		for _, s := range list {
			if s.Device == c.uuid {
				found = s
			}
		}
		if found == nil {
			errs = append(errs, fmt.Errorf("GPU %s (%s) is no slice", c.uuid, c.name))
			continue
		}
		if found.Model != c.name {
			errs = append(errs, fmt.Errorf("slice %s is a %q, nvidia-smi has %q", found.Id, found.Model, c.name))
		}
		// nvidia-smi rounds each to MiB. Where it does not say what is the driver's, the slice is the whole.
		want := c.total - max(0, c.reserved)
		if has := found.MemoryBytes >> 20; has < want-2 || has > want+2 {
			errs = append(errs, fmt.Errorf("slice %s has %d MiB, nvidia-smi has %d (%d without the driver's %d)", found.Id, has, want,
				c.total, max(0, c.reserved)))
		}
	}
	instances := 0
	for _, s := range list {
		if strings.HasPrefix(s.Device, "MIG-") {
			instances++
		}
	}
	if instances != cut || len(list)-instances != whole {
		errs = append(errs, fmt.Errorf("there are slices of %d whole GPUs and %d MIG instances, nvidia-smi has %d and %d",
			len(list)-instances, instances, whole, cut))
	}
	return errors.Join(errs...)
}
