package cluster

import (
	"time"

	"sluice.dev/sluice/internal/core/civil"
	"sluice.dev/sluice/internal/core/quantity"
)

// Pool says which devices of a cluster are offered, and when. A machine may belong to several; a device belongs to the first that matches
// it.
type Pool struct {
	Name string
	// Nodes are labels that a machine must have; none: all machines.
	Nodes map[string]string
	// Classes of DRA devices, the preferred first: where devices share counters, those of the first class that fit are offered.
	Classes []Class
	// Resources are extended resources, as device plugins publish them.
	Resources []Resource
	// Tolerates are the keys of taints that our Pods have tolerations for.
	Tolerates []string
	// Calendar is when the pool is closed. Nothing is placed beyond the begin of a closing, and what runs then is cut short.
	Calendar []Closing
	// Notice is how long before its slice is reclaimed a subjob is warned. Default 30 s. NeverGives: the pool gives nothing back.
	Notice     time.Duration
	NeverGives bool
	// Ownerless is for how long a subjob's Pod goes on without hearing of its operator; 0: to its lease's end.
	Ownerless time.Duration
}

// Class is a DeviceClass as it is used for subjobs.
type Class struct {
	// Name of the DeviceClass, and the Driver of its devices.
	Name, Driver string
	// Attributes that a device must have, by names without a domain: type: mig, profile: 1g.10gb.
	Attributes map[string]string
	// Memory in bytes, for devices that do not publish theirs, and Speed in parts per thousand of a whole GPU; 0: by model and profile. A
	// device of unknown memory is left out.
	Memory quantity.Amount
	Speed  int64
}

// Resource is an extended resource.
type Resource struct {
	// Name as in Pods' requests: nvidia.com/mig-1g.10gb.
	Name string
	// Model of the GPUs and Profile of the slices; empty: by the machine's labels and the resource's name.
	Model, Profile string
	// Memory in bytes and Speed in parts per thousand; 0: by model and profile.
	Memory quantity.Amount
	Speed  int64
}

// Closing is an interval in which a pool is closed, repeated each Every (0: once), or as a calendar says: then it is the
// first occurrence.
type Closing struct {
	Name       string
	Start, End quantity.Instant
	Every      time.Duration
	Calendar   civil.Calendar
}
