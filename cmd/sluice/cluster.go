//go:build kubernetes

package main

import (
	"net/http"

	"sluice.dev/sluice/internal/face/cli"
	"sluice.dev/sluice/internal/face/operator/client"
)

// cluster reaches the jobs of a namespace of a cluster.
func cluster(w cli.Where) (http.RoundTripper, string, error) {
	return client.Open(client.Options(w))
}
