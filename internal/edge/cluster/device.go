// Package cluster is the vocabulary shared by inventory, executor and operator of a Kubernetes cluster: how a device is written, how our
// objects are named, labelled and sealed. It imports no Kubernetes client.
package cluster

import (
	"net/url"
	"strconv"
	"strings"

	"sluice.dev/sluice/internal/core/errkind"
)

// Device says how a Pod gets a slice. Its text is the Device of a cluster's slice. Either Resource is set (extended resources), or Class,
// Driver, Pool and Name are (DRA).
type Device struct {
	// Node is the machine's name in Kubernetes.
	Node string
	// Resource is an extended resource, such as nvidia.com/mig-1g.10gb. A Pod asks for one; the device plugin chooses which.
	Resource string
	// Ordinal numbers the slices of one resource on one machine, from 0. It is not part of a Pod's request.
	Ordinal int
	// Class is the DeviceClass for the claim; Driver, Pool and Name identify the device.
	Class, Driver, Pool, Name string
}

// String is dra:NODE/CLASS/DRIVER/POOL/NAME or resource:NODE/RESOURCE[/ORDINAL], without the ordinal 0. Elements are escaped as in a URL's
// path.
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

// ParseDevice is String's inverse. Errors are of kind Invalid.
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
	return Device{}, errkind.Errorf(errkind.Invalid, "%.200q is no device of a cluster: want resource:NODE/RESOURCE, with or without "+
		"/ORDINAL, or dra:NODE/CLASS/DRIVER/POOL/NAME", text)
}
