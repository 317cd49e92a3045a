package stream

import (
	"slices"

	"sluice.dev/sluice/internal/core/protocol"
)

// before is a message as a link of version 1 carries it: nobody has an address, and of a rigid job that is not done nothing counts. Bodies
// are shared with who sent them, and left as they are.
func before(m protocol.Message) protocol.Message {
	switch b := m.Body.(type) {
	case *protocol.SliceView:
		if b.Slice.Address != "" {
			v := *b
			v.Slice.Address = ""
			m.Body = &v
		}
	case *protocol.Stock:
		if slices.ContainsFunc(b.Slices, func(s protocol.Slice) bool { return s.Address != "" }) {
			v := *b
			v.Slices = slices.Clone(b.Slices)
			for i := range v.Slices {
				v.Slices[i].Address = ""
			}
			m.Body = &v
		}
	case *protocol.Work:
		v := *b
		v.Plan.Addresses, v.Plan.Port = nil, 0
		if v.Spec != nil && v.Spec.Saves {
			spec := *v.Spec
			spec.Saves = false
			v.Spec = &spec
		}
		m.Body = &v
	}
	return m
}
