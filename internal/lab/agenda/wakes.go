package agenda

import (
	"slices"

	"sluice.dev/sluice/internal/core/alarm"
	"sluice.dev/sluice/internal/core/quantity"
)

// Wakes is when every party wants a tick, so that one that moves its wake-up costs nobody else a look.
type Wakes struct {
	// at is by party, Never for one that wants none; slots are its places in heap. No party comes after the first wake-up is set.
	at    []quantity.Instant
	slots []int
	heap  alarm.Heap[int]
	room  []int // of Due
}

// Add makes room for one more party, which wants no tick.
func (w *Wakes) Add() {
	w.at, w.slots = append(w.at, quantity.Never), append(w.slots, 0)
}

// Set moves a party's wake-up; Never drops it.
func (w *Wakes) Set(party int, at quantity.Instant) {
	w.at[party] = at
	w.heap.Set(&w.slots[party], party, at)
}

// At is a party's wake-up, Never if it wants none.
func (w *Wakes) At(party int) quantity.Instant { return w.at[party] }

// Next is the first wake-up, Never if there is none.
func (w *Wakes) Next() quantity.Instant { return w.heap.Next() }

// Due drops the wake-ups that are not later than now and gives their parties in order, good until the next call.
func (w *Wakes) Due(now quantity.Instant) []int {
	w.room = w.room[:0]
	for p, ok := w.heap.Due(now); ok; p, ok = w.heap.Due(now) {
		w.at[p] = quantity.Never
		w.room = append(w.room, p)
	}
	slices.Sort(w.room)
	return w.room
}
