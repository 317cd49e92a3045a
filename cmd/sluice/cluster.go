//go:build kubernetes

package main

import (
	"net/http"

	"sluice.dev/sluice/internal/face/cli/session"
	"sluice.dev/sluice/internal/face/operator/client"
)

// cluster reaches the jobs of a namespace of a cluster.
func cluster(w session.Where) (http.RoundTripper, string, error) {
	return client.Open(client.Options(w))
}
