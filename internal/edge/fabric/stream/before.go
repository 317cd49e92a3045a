package stream

import (
	"slices"

	"sluice.dev/sluice/internal/core/protocol"
)

// before is a message as a link of version 1 carries it: nobody has an address, jobs have no owner, of a rigid job that is not done nothing
// counts, and no machine leaves. That version refuses a message with a field that it does not know, and the link with it, so what version 2
// has added to any body that links carry is taken out here. Bodies are shared with who sent them, and left as they are.
func before(m protocol.Message) protocol.Message {
	switch b := m.Body.(type) {
	case *protocol.SliceView:
		if b.Slice.Address != "" {
			v := *b
			v.Slice.Address = ""
			m.Body = &v
		}
	case *protocol.Stock:
		v := *b
		v.Until, v.Leaves, v.Slices = 0, false, slices.Clone(b.Slices)
		for i := range v.Slices {
			v.Slices[i].Address = ""
		}
		m.Body = &v
	case *protocol.Asking:
		v := *b
		v.Plan.Addresses, v.Plan.Port = nil, 0
		m.Body = &v
	case *protocol.Work:
		v := *b
		v.Plan.Addresses, v.Plan.Port = nil, 0
		if v.Spec != nil {
			spec := *v.Spec
			spec.Owner, spec.Saves = "", false
			v.Spec = &spec
		}
		m.Body = &v
	}
	return m
}
