// Package pod is what an operator and the first process of a Pod agree on, and that process (`sluice-shim pod`): it does in a Pod what the daemon does
// on a machine. It fetches what the subjob needs, has the supervisor run it, hands on what is done to it meanwhile, puts what it leaves into the store, and
// then says how it ended. It holds URLs for its own subjob's objects, which expire, and no key of anything; it must not know an API server.
//
// Standard library and golang.org/x/sys only, as for all of sluice-shim.
package pod

import (
	"encoding/json"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/store"
)

// The first argument of sluice-shim in a Pod, and what is in the directory of a Pod.
const (
	// Verb runs a subjob: pod DIRECTORY RUN-FILE ORDER-FILE END-FILE.
	Verb = "pod"
	// Install makes the Pod's directory ready: install DIRECTORY POD. It copies the program itself and the certificates that its own image trusts, since the subjob's image may
	// have neither, and opens the run file.
	Install = "install"
	// Program, RunFile, Bundle and Runs are below that directory. Bundle lies beside the run file: certificates (PEM) that are trusted as well as those of the subjob's image.
	Program = "bin/sluice-shim"
	RunFile = "run.json"
	Bundle  = "ca-certificates.crt"
	Runs    = "runs"
)

// Run is the run file: a subjob as it was sold, and where its objects are. It is sealed on its way (Seal): URLs and the job's environment are in it.
type Run struct {
	Token           job.Token
	Job             job.ID
	Generation      job.Generation
	Slice           job.SliceID
	Kind            job.Kind
	Range           job.Range
	Member, Members int `json:",omitempty"`
	Total, Grid     int64
	// Start and End by the operator's clock, Asked when it was asked for; End may be Never.
	Start, End, Asked quantity.Instant
	// Linger is how long after its end a subjob's output may take to be stored.
	Linger time.Duration
	Grace  time.Duration
	// WarnSignal is sent WarnBefore ahead of End; 0 for none.
	WarnSignal int           `json:",omitempty"`
	WarnBefore time.Duration `json:",omitempty"`
	Command    []string
	Env        []string `json:",omitempty"`
	Subdir     string   `json:",omitempty"`
	// Memory that the program is told it has, in bytes; Measured: it is the process tree's, and watched; else a device's.
	Memory   quantity.Amount
	Measured bool `json:",omitempty"`
	// LogLimit and OutputLimit in bytes; at least 1.
	LogLimit, OutputLimit int64
	// Report is the time between two looks at how far it is.
	Report time.Duration
	// Work is the work directory, Resume the checkpoint to start from; nil: there is none.
	Work, Resume *Source `json:",omitempty"`
	// Output, Checkpoint and Progress are where what it leaves is put (HTTP PUT).
	Output, Checkpoint, Progress string
}

// Source is an object that is fetched (HTTP GET), and refused if it has another digest. Unpacked it has at most Bytes.
type Source struct {
	URL    string
	Digest store.Digest
	Bytes  int64
}

// Order is the order file: what was done to the subjob since it was started. It is an annotation of the Pod, which the kubelet shows as a file.
type Order struct {
	// End replaces the lease's. Cut: that is earlier than was promised.
	End quantity.Instant
	Cut bool `json:",omitempty"`
	// Stop asks it to end now, Now without grace.
	Stop bool   `json:",omitempty"`
	Now  bool   `json:",omitempty"`
	Why  string `json:",omitempty"`
}

// Word is what lies at the progress place: how far a subjob is. Nothing that counts hangs on it.
type Word struct {
	// Started is when the command began, 0: it has not.
	Started quantity.Instant
	// Progress is the unit up to which work is complete, as of At.
	Progress int64
	At       quantity.Instant
	// Storing: its processes are gone, and what it has left is being stored.
	Storing bool `json:",omitempty"`
}

// Said is the termination message: how it ended, and what lies at its places.
type Said struct {
	Result             job.Result
	Output, Checkpoint *Left `json:",omitempty"`
}

// Left is what was put to a place: the object that has this digest.
type Left struct {
	Digest store.Digest
	Size   int64
}

// MaxSaid is how long a termination message may be, in bytes: what is longer a kubelet cuts off. That is 4,096 for a container, and 12 KiB for all of a Pod: others may be put into ours.
const MaxSaid = 1536

// Encode is the message as a kubelet reads it. The words for people are cut where it would be too long.
func (s Said) Encode() []byte {
	for {
		data, err := json.Marshal(&s)
		if err != nil || len(data) <= MaxSaid {
			return data // what can't be encoded there is not in it
		}
		detail := []rune(s.Result.Detail)
		keep := len(detail) / 2
		if s.Result.Detail = string(detail[len(detail)-keep:]); keep == 0 {
			s.Result.Detail = ""
		}
	}
}

// Decode reads what Encode wrote; false: it is none, and the words are somebody else's.
func Decode(text string) (s Said, ok bool) {
	return s, json.Unmarshal([]byte(text), &s) == nil && s.Result.Outcome != 0
}
