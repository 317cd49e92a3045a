// Package cli is the command sluice: it turns arguments into calls of the daemon's API and answers into tables, JSON and
// exit codes. Only the command up starts a daemon itself, through what its caller hands it (Deps).
//
// It must not know how the daemon decides or stores anything: what it shows, it got over the API.
package cli
