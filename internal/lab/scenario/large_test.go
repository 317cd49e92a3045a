package scenario

import (
	"fmt"
	"strings"
	"testing"
)

// TestTenThousandNodes may be in one cluster, and no more than the bound, which the refusal names.
func TestTenThousandNodes(t *testing.T) {
	for nodes, ok := range map[int]bool{10_000: true, MaxNodes: true, MaxNodes + 1: false} {
		text := fmt.Sprintf("scenario: large\ndoc: x\ncluster: {zones: 100, gates: 4, nodes: [{count: %d, gpus: "+
			"\"sim:a30-24gb=1\"}]}\nworkload: {jobs: [{at: 0s, items: {total: 1, perItem: 1s}, memory: 1Gi}]}\n", nodes)
		_, err := Parse("large.yml", []byte(text))
		if said := err != nil && strings.Contains(err.Error(), fmt.Sprint(MaxNodes)); said == ok {
			t.Errorf("%d nodes: %v", nodes, err)
		}
	}
}
