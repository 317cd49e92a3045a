package scenario

import "sluice.dev/sluice/internal/drive/workload/compose"

// Assumptions says in a sentence each what the generated and composed work of the scenario takes for granted; none where
// all jobs are explicit. An error means that the published traces can not be read.
func (s *Scenario) Assumptions(data *Traces) ([]string, error) {
	var out []string
	seen := map[string]bool{}
	for i := range s.Workload.Streams {
		t := &s.Workload.Streams[i]
		in, err := t.inputs(data)
		if err != nil {
			return nil, err
		}
		for _, sentence := range compose.Assumptions(in, t.Options) {
			if !seen[sentence] {
				seen[sentence] = true
				out = append(out, sentence)
			}
		}
	}
	return out, nil
}
