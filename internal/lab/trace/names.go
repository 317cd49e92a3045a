package trace

import "strings"

const (
	// maxNames bounds the memory for names that come again; later new ones are kept like ids.
	maxNames = 4096
	// chunk is how many bytes of ids share one allocation.
	chunk = 4096
)

// names makes strings of bytes without an allocation for each.
type names struct {
	known map[string]string
	ids   strings.Builder
}

// id keeps text that will hardly come again.
func (n *names) id(text []byte) string {
	if n.ids.Cap()-n.ids.Len() < len(text) {
		n.ids = strings.Builder{} // the strings cut from the old one keep it
		n.ids.Grow(max(chunk, len(text)))
	}
	from := n.ids.Len()
	n.ids.Write(text)
	return n.ids.String()[from:]
}

// name keeps text that comes again and again.
func (n *names) name(text []byte) string {
	if s, ok := n.known[string(text)]; ok {
		return s
	}
	if len(n.known) >= maxNames {
		return n.id(text)
	}
	if n.known == nil {
		n.known = map[string]string{}
	}
	s := string(text)
	n.known[s] = s
	return s
}
