package pod

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"sluice.dev/sluice/internal/edge/executor/shim"
)

// patience is how long after SIGTERM the order is waited for that says why: the annotation comes before the deletion, and the file may come behind the signal.
const patience = time.Second

// heed reads the order, and hands it on to the supervisor once it says something new. A file that can't be read or written is tried again.
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
	c := shim.Control{End: min(o.End, p.run.End), Range: p.run.Range, Anchor: p.lease.Anchor, Stop: o.Stop, Now: o.Now, Cut: o.Cut, Cause: o.Why}
	if err := p.dir.WriteControl(&c); err != nil {
		fmt.Fprintln(os.Stderr, "sluice-shim: handing on what is asked of the subjob:", err)
		return
	}
	p.heeded = said
}

// read takes over the order file. One that is not there, is empty or half written says nothing.
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

// stopped says whether the subjob is to end before it has begun.
func (p *process) stopped() bool {
	select {
	case <-p.asked:
		p.signalled = time.Now()
	default:
	}
	p.read()
	return p.order.Stop || !p.signalled.IsZero()
}
