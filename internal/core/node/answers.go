package node

import (
	"slices"

	"sluice.dev/sluice/internal/core/protocol"
)

// remembered is how many answers to people are kept.
const remembered = 64

// answers are the latest to people, so that a call that came twice is carried out once. What failed may be tried again.
type answers struct{ list []protocol.Message }

// find is the answer to a request, if it was given.
func (a *answers) find(from protocol.Address, request string) (protocol.Message, bool) {
	i := slices.IndexFunc(a.list, func(m protocol.Message) bool {
		return request != "" && m.Body.(*protocol.Receipt).Request == request && m.To == from
	})
	if i < 0 {
		return protocol.Message{}, false
	}
	return a.list[i], true
}

// keep notes an answer.
func (a *answers) keep(m protocol.Message) {
	if len(a.list) == remembered {
		a.list = slices.Delete(a.list, 0, 1)
	}
	a.list = append(a.list, m)
}
