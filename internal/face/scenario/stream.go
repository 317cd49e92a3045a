package scenario

// Synthetic is a stream of generated jobs.
type Synthetic struct{}

// Compose is work composed of published traces.
type Compose struct{}
