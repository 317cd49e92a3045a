// Package slices tests the inventory of a cluster, and giving back, on a real API server with its scheduler. Machines are those of kwok;
// what the executor does when a slice is cut short the tests do.
package slices
