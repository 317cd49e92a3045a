// Package cluster is the words that what finds slices in a Kubernetes cluster, what runs subjobs there and what speaks to its people have in
// common: how a device is written, what our objects are called and labelled, and by what ours are known. It knows no client of Kubernetes.
package cluster

import (
	"net/url"
	"strconv"
	"strings"

	"sluice.dev/sluice/internal/core/errkind"
)

// Device is how a Pod gets a slice: it is what a slice of a cluster has as its Device. Either Resource is set (extended resources), or
// Class, Driver, Pool and Name are (DRA).
type Device struct {
	// Node is the machine that the Pod has to run on, as Kubernetes names it.
	Node string
	// Resource is an extended resource, such as nvidia.com/mig-1g.10gb: one of it is asked for, and the device plugin says which it is.
	Resource string
	// Ordinal tells the slices of one resource on one machine apart, from 0 on. No Pod asks for it.
	Ordinal int
	// Class is the DeviceClass that a claim names, Driver and Pool whose device it is, and Name the device.
	Class, Driver, Pool, Name string
}

// String is the device as ParseDevice reads it: dra:NODE/CLASS/DRIVER/POOL/NAME or resource:NODE/RESOURCE, with /ORDINAL behind all but the first of them. Each word is
// escaped as in a URL's path.
func (d Device) String() string {
	words := []string{d.Node, d.Resource}
	kind := "resource:"
	if d.Ordinal > 0 {
		words = append(words, strconv.Itoa(d.Ordinal))
	}
	if d.Resource == "" {
		kind, words = "dra:", []string{d.Node, d.Class, d.Driver, d.Pool, d.Name}
	}
	for i := range words {
		words[i] = url.PathEscape(words[i])
	}
	return kind + strings.Join(words, "/")
}

// ParseDevice reads what String wrote. Errors are of kind Invalid.
func ParseDevice(text string) (d Device, err error) {
	kind, rest, _ := strings.Cut(text, ":")
	words := strings.Split(rest, "/")
	for i := range words {
		if words[i], err = url.PathUnescape(words[i]); err != nil || words[i] == "" {
			return Device{}, errkind.Errorf(errkind.Invalid, "%.200q is no device of a cluster: word %d is empty or not escaped", text, i+1)
		}
	}
	switch {
	case kind == "resource" && len(words) == 2:
		return Device{Node: words[0], Resource: words[1]}, nil
	case kind == "resource" && len(words) == 3:
		if n, err := strconv.Atoi(words[2]); err == nil && n > 0 && strconv.Itoa(n) == words[2] {
			return Device{Node: words[0], Resource: words[1], Ordinal: n}, nil
		}
	case kind == "dra" && len(words) == 5:
		return Device{Node: words[0], Class: words[1], Driver: words[2], Pool: words[3], Name: words[4]}, nil
	}
	return Device{}, errkind.Errorf(errkind.Invalid, "%.200q is no device of a cluster: want resource:NODE/RESOURCE, with or without /ORDINAL, or dra:NODE/CLASS/DRIVER/POOL/NAME", text)
}
