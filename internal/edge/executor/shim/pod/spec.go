// Package pod is the first process of a subjob's Pod (`sluice-shim pod`), and its contract with the operator. It does in a Pod what the
// daemon does on a machine: it fetches what the subjob needs, makes the supervisor run it, passes orders on, stores output and checkpoint,
// and then reports the end. It holds expiring URLs for its own subjob's objects and no keys, and never talks to an API server.
//
// Standard library and golang.org/x/sys only, as for all of sluice-shim.
package pod

import (
	"encoding/json"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/store"
)

// Verbs of sluice-shim in a Pod, and names in the Pod's directory.
const (
	// Verb runs a subjob: pod DIRECTORY RUN-FILE ORDER-FILE END-FILE.
	Verb = "pod"
	// Install prepares the Pod's directory: install DIRECTORY POD. It copies the program and its image's certificates, since the subjob's
	// image may have neither, and decrypts the run file.
	Install = "install"
	// Lend prepares the directory of a pilot's Pod: lend DIRECTORY TOKEN-FILE. It copies both programs, and the token to a file that only
	// its user can read.
	Lend = "lend"
	// Program, RunFile, Bundle and Runs are in that directory. Bundle lies beside the run file, where Main looks for it: certificates (PEM)
	// that are trusted in addition to the subjob's image's.
	Program = "bin/sluice-shim"
	RunFile = "run.json"
	Bundle  = "ca-certificates.crt"
	Runs    = "runs"
	// Joiner and TokenFile are in the directory of a pilot: sluice beside Program, and its token.
	Joiner    = "bin/sluice"
	TokenFile = "join-token"
)

// Run is the run file: the subjob as sold, and the URLs of its objects. It is encrypted in transit (Seal), for the URLs and the job's
// environment.
type Run struct {
	executor.Part
	// Start and End of the lease by the operator's clock; End may be Never. Asked is when it was ordered.
	Start, End, Asked quantity.Instant
	// Linger is how long after End storing may take.
	Linger time.Duration
	Grace  time.Duration
	// WarnSignal is sent WarnBefore ahead of End; 0: none.
	WarnSignal int           `json:",omitempty"`
	WarnBefore time.Duration `json:",omitempty"`
	Command    []string
	Adapter    job.Adapter `json:",omitzero"`
	Env        []string    `json:",omitempty"`
	Subdir     string      `json:",omitempty"`
	Umask      job.Umask
	// Resident: its program takes subjobs from its standard input. In a Pod that is the one, and then the input ends.
	Resident bool `json:",omitempty"`
	// Memory is what the program is told it has, in bytes. Measured: it is host memory and enforced by the supervisor; else it is the
	// device's.
	Memory   quantity.Amount
	Measured bool `json:",omitempty"`
	// LogLimit and OutputLimit in bytes; at least 1.
	LogLimit, OutputLimit int64
	// Report is the interval of progress words.
	Report time.Duration
	// Work is the work directory, Resume the checkpoint to start from; nil: none.
	Work, Resume *Source `json:",omitempty"`
	// Output, Checkpoint and Progress are URLs for HTTP PUT.
	Output, Checkpoint, Progress string
	// Ownerless is for how long it goes on without a new beat of the operator, which Beat is the URL of (HTTP GET); 0: to its end. Then it
	// has Notice, or its grace if that is longer, to yield.
	Ownerless time.Duration `json:",omitempty"`
	Notice    time.Duration `json:",omitempty"`
	Beat      string        `json:",omitempty"`
}

// Beats is how often in the time after which they yield Pods look for a new beat.
const Beats = 6

// Pulse is the operator's beat. Only that it changes counts: clocks differ.
type Pulse struct {
	Life     string
	Sequence int64
	At       quantity.Instant
}

// Source is an object to fetch (HTTP GET) and verify against its digest. Bytes bounds it unpacked.
type Source struct {
	URL    string
	Digest store.Digest
	Bytes  int64
}

// Order is the order file: changes since the start. It is an annotation of the Pod, projected into a file by the kubelet.
type Order struct {
	// End replaces the lease's. Cut: it is earlier than promised.
	End quantity.Instant
	Cut bool `json:",omitempty"`
	// Stop ends it; Now: without grace.
	Stop bool   `json:",omitempty"`
	Now  bool   `json:",omitempty"`
	Why  string `json:",omitempty"`
}

// Word is what a subjob writes to its progress place. It can be forged, and no result depends on it; the executor lets Started and Storing
// delay orders and the Pod's end, by Linger at most.
type Word struct {
	// Started is when the command began; 0: not yet.
	Started quantity.Instant
	// Progress is the unit up to which work is complete, as of At.
	Progress int64
	At       quantity.Instant
	// Storing: its processes have ended, and what it left is being stored.
	Storing bool `json:",omitempty"`
}

// Said is the termination message: how the subjob ended, and what is at its places.
type Said struct {
	Result             job.Result
	Output, Checkpoint *Left `json:",omitempty"`
}

// Left identifies what was uploaded to a place by its digest.
type Left struct {
	Digest store.Digest
	Size   int64
}

// MaxSaid bounds a termination message in bytes. A kubelet truncates beyond 4,096 for a container and 12 KiB for a whole Pod: this leaves
// room for injected containers.
const MaxSaid = 1536

// Encode is the message's text. What trials were worth, and words for people, are cut to keep it within MaxSaid.
func (s Said) Encode() []byte {
	for {
		data, err := json.Marshal(&s)
		if err != nil || len(data) <= MaxSaid {
			return data // always encodable
		}
		if t := s.Result.Tried; t != nil && len(t.Scores) > 0 {
			s.Result.Tried = &job.Tried{Scores: t.Scores[:len(t.Scores)/2], Hopeless: t.Hopeless}
			continue
		}
		detail := []rune(s.Result.Detail)
		keep := len(detail) / 2
		if s.Result.Detail = string(detail[len(detail)-keep:]); keep == 0 {
			s.Result.Detail = ""
		}
	}
}

// Decode is Encode's inverse; false: not a message of ours.
func Decode(text string) (s Said, ok bool) {
	return s, json.Unmarshal([]byte(text), &s) == nil && s.Result.Outcome != 0
}
