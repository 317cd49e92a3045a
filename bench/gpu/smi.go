package main

import (
	"encoding/xml"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// card is one GPU as `nvidia-smi -q -x` has it. Sizes in MiB, as it prints them.
type card struct {
	name, uuid string
	// total, and reserved of it: what the driver keeps for itself; -1: it does not say.
	total, reserved int64
	// mig: MIG is on; instances is how many there are.
	mig       bool
	instances int
}

// readSMI reads the output of `nvidia-smi -q -x`: the driver's version and the GPUs, in its order.
func readSMI(text []byte) (driver string, cards []card, err error) {
	type memory struct {
		Total    string `xml:"total"`
		Reserved string `xml:"reserved"`
	}
	var log struct {
		XMLName xml.Name `xml:"nvidia_smi_log"`
		Driver  string   `xml:"driver_version"`
		GPUs    []struct {
			Name   string `xml:"product_name"`
			UUID   string `xml:"uuid"`
			Mode   string `xml:"mig_mode>current_mig"`
			Memory memory `xml:"fb_memory_usage"`
			// Where there is none the element has the text None.
			Instances []struct{} `xml:"mig_devices>mig_device"`
		} `xml:"gpu"`
	}
	d := xml.NewDecoder(strings.NewReader(string(text)))
	if err = d.Decode(&log); err != nil {
		return "", nil, fmt.Errorf("nvidia-smi -q -x: %w", err)
	}
	var errs []error
	for i, g := range log.GPUs {
		total, err := megabytes(g.Memory.Total)
		if err != nil || g.UUID == "" {
			errs = append(errs, fmt.Errorf("nvidia-smi -q -x: GPU %d has the UUID %q and a memory of %q", i, g.UUID, g.Memory.Total))
			continue
		}
		reserved, err := megabytes(g.Memory.Reserved)
		if err != nil {
			reserved = -1 // N/A, or a driver that is too old to say
		}
		cards = append(cards, card{name: strings.TrimSpace(g.Name), uuid: g.UUID, total: total, reserved: reserved,
			mig: strings.TrimSpace(g.Mode) == "Enabled", instances: len(g.Instances)})
	}
	return log.Driver, cards, errors.Join(errs...)
}

// megabytes reads "81559 MiB".
func megabytes(s string) (int64, error) {
	digits, ok := strings.CutSuffix(strings.TrimSpace(s), " MiB")
	if !ok {
		return 0, fmt.Errorf("%q: want a number and MiB", s)
	}
	return strconv.ParseInt(digits, 10, 64)
}
