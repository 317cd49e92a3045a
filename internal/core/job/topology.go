package job

// Level is how far the slices of one gang may lie apart. The levels of a cluster are nested: a rack has nodes, a block has racks, a zone
// has blocks, the cluster has zones.
type Level uint8

const (
	// SameNode: all slices are of one node. The default.
	SameNode Level = iota
	// SameRack: of nodes of one rack.
	SameRack
	// SameBlock: of nodes of one block.
	SameBlock
	// SameZone: of any nodes of the job's home.
	SameZone
	// SameCluster: of any nodes of several zones, if the job's home is too small for it.
	SameCluster
)

var levelNames = [...]string{"node", "rack", "block", "zone", "cluster"}

// String is the level's name in job files and for people.
func (l Level) String() string {
	if int(l) < len(levelNames) {
		return levelNames[l]
	}
	return "unknown"
}

// Levels are the names of the levels, the closest first.
func Levels() []string { return levelNames[:] }
