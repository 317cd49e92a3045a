package node

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// rigid are three subjobs of 500 MiB on a host of 8,000 that can neither yield nor be moved out, the lowest first, on as many nodes.
func rigid(t *testing.T, nodes int) (m shared, tokens []job.Token) {
	m = newShared(t, nodes)
	names := []job.SliceID{"a", "b", "c"}
	for _, w := range m {
		stock := &protocol.Stock{Slices: []protocol.Slice{device("a"), device("b"), device("c")}}
		w.step(protocol.Message{Kind: protocol.Inventory, From: executor, Body: stock})
	}
	for i, priority := range []int32{-50, 0, 90} {
		rank := protocol.Rank{Class: protocol.Collective, Priority: priority}
		tokens = append(tokens, m[i%nodes].ranked(uint64(1+i), names[i], rank, 0))
	}
	return m, tokens
}

// TestVictimsAreNotAMatterOfMilliseconds: 446 MiB are missing at the emergency line, and the lowest of three brings 500. Nobody else
// ends, however its exit, what its home and its executor make of that, and what the sensors say of it and of the host follow each other
// within 50 ms, also where the others are another node's.
func TestVictimsAreNotAMatterOfMilliseconds(t *testing.T) {
	const mib = quantity.Amount(1) << 20
	for _, nodes := range []int{1, 3} {
		// At looks gone and shown the sensors no longer name it, and the host has as much less in use; 4: not in this time. Its end comes
		// in three words, each before one of the looks: ends says before which.
		for gone := range 5 {
			for shown := range 5 {
				for ends := range 5 * 5 * 5 {
					first, second, third := ends%5, ends/5%5, ends/25
					if first > second || second > third {
						continue
					}
					m, tokens := rigid(t, nodes)
					ended := map[job.Token]int{}
					look := func(at int) {
						s := protocol.Strain{Capacity: 8000 * mib, Used: 7806 * mib}
						for i, token := range tokens {
							if i > 0 || at < gone {
								s.Uses = append(s.Uses, protocol.Use{Token: token, Resident: 500 * mib})
							}
						}
						if at >= shown {
							s.Used -= 500 * mib
						}
						for _, e := range m.press(s) {
							ended[e.Token]++
						}
					}
					look(-1)
					words := []func(){
						func() { m[0].step(exited(tokens[0], job.Stopped, 0)) },
						func() {
							m[0].step(protocol.Message{
								Kind: protocol.ResultAck, From: zone, Token: tokens[0], Job: "j", Body: &protocol.Acknowledgement{},
							})
						},
						func() { m[0].step(protocol.Message{Kind: protocol.Settled, From: executor, Token: tokens[0]}) },
					}
					for at := range 5 {
						for i, before := range []int{first, second, third} {
							if before == at {
								words[i]()
							}
						}
						m.pass(10 * time.Millisecond)
						look(at)
					}
					if len(ended) != 1 || ended[tokens[0]] == 0 {
						t.Fatalf("%d nodes, not named from look %d on, shown from look %d on, its end before looks %d, %d and %d: "+
							"told to end are %v", nodes, gone, shown, first, second, third, ended)
					}
				}
			}
		}
	}
}
