// Package agents speaks with the agents of external jobs: it calls those who could use a window, waits for their answers, and tells them
// what became of them. It must not know what an answer is worth.
package agents
