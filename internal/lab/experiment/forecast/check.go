package forecast

import "path/filepath"

// File of the series below a folder of published traces.
const File = "genai2026/pod_gpu_memory_used_bytes_anon.csv.gz"

// Report is all of it.
type Report struct {
	Series *GenAI
	Jobs   []Line
}

// Check runs everything on a folder of published traces. The error is of kind NotFound or Invalid, and says what is missing.
func Check(dir string) (*Report, error) {
	lines, err := Jobs(dir)
	if err != nil {
		return nil, err
	}
	series, err := Read(filepath.Join(dir, filepath.FromSlash(File)))
	if err != nil {
		return nil, err
	}
	return &Report{Series: Frontier(series), Jobs: lines}, nil
}

// OK says whether what is promised for exchangeable jobs was kept. The target on the series is another matter: Met.
func (r *Report) OK() bool {
	for _, l := range r.Jobs {
		if !l.OK {
			return false
		}
	}
	return true
}
