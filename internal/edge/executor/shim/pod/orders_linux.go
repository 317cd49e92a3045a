package pod

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"sluice.dev/sluice/internal/edge/executor/shim"
)

// patience is how long after SIGTERM to wait for the order that says why: the annotation is written before the deletion, but the kubelet
// may update the file after the signal.
const patience = time.Second

// heed reads the order file and passes news to the supervisor. Failures are retried with the next tick.
func (p *process) heed() {
	p.read()
	o := p.order
	if !o.Stop && !p.signalled.IsZero() {
		if time.Since(p.signalled) < min(patience, p.run.Grace/2) {
			return
		}
		o.Stop, o.Why = true, "its Pod is being deleted"
	}
	said := fmt.Sprint(o)
	if said == p.heeded || o == (Order{End: p.run.End}) {
		return
	}
	c := shim.Control{End: min(o.End, p.run.End), Range: p.run.Range, Anchor: p.lease.Anchor, Stop: o.Stop, Now: o.Now, Cut: o.Cut,
		Cause: o.Why}
	if err := p.dir.WriteControl(&c); err != nil {
		fmt.Fprintln(os.Stderr, "sluice-shim: handing on what is asked of the subjob:", err)
		return
	}
	p.heeded = said
}

// read reads the order file. A missing, empty or partial one says nothing.
func (p *process) read() {
	data, err := os.ReadFile(p.orders)
	if err != nil || len(bytes.TrimSpace(data)) == 0 {
		return
	}
	o := Order{End: p.run.End}
	if json.Unmarshal(data, &o) == nil {
		p.order = o
	}
}

// stopped reports whether the subjob is to end before its begin.
func (p *process) stopped() bool {
	select {
	case <-p.asked:
		p.signalled = time.Now()
	default:
	}
	p.read()
	return p.order.Stop || !p.signalled.IsZero()
}
