// Package trp is the temporal resource profile: how much of each named resource a job uses as it progresses, as a
// distribution over progress and never over wall-clock time (SJA, arXiv 2509.19086, statement S7; our forms: docs/adr).
//
// Floats live only inside this package. Compile turns a Profile into a Table of integers, which is what facts carry and
// what every decision uses, so that a decision is the same on every processor.
package trp

import "sluice.dev/sluice/internal/core/quantity"

// Resource is an index into Vector. Memory is the first resource and today the only one.
type Resource uint8

const (
	// Memory of the slice, in bytes.
	Memory Resource = iota
	// Resources is how many there are.
	Resources
)

// Vector is an amount of every named resource.
type Vector [Resources]quantity.Amount

// Fits says whether v is within cap in every resource.
func (v Vector) Fits(capacity Vector) bool {
	for r := range v {
		if v[r] > capacity[r] {
			return false
		}
	}
	return true
}

// Max returns the larger amount for every resource.
func (v Vector) Max(w Vector) Vector {
	for r := range v {
		v[r] = max(v[r], w[r])
	}
	return v
}
