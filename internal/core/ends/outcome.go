package ends

import (
	"strings"

	"sluice.dev/sluice/internal/core/quantity"
)

// Bet is the prediction that a subjob was sold on.
type Bet struct {
	// Until its gap was predicted to last; Never or 0 where nothing was predicted.
	Until quantity.Instant
	// Claimed: there was a claimed end.
	Claimed bool
}

// None says that nothing was predicted.
func (b Bet) None() bool { return b.Until == 0 || b.Until == quantity.Never }

// Outcome is how a subjob has ended.
type Outcome struct {
	// Planned is when it was to end, Ended when it did; Cut: because its gap was over.
	Planned, Ended quantity.Instant
	Cut            bool
}

// Keys name the kinds that a gap belongs to, from the special to the general: what was there before it and the class of its
// slice; whose that was, with the class; the class; all. Some may be the same.
type Keys [4]string

// KeysOf names the kinds of a gap behind somebody's stay on a slice of a class. Source is the description of that stay.
func KeysOf(class, source string) Keys {
	user, template := Whose(source)
	return Keys{class + "\n" + user + "\n" + template, class + "\n" + user, class, ""}
}

// longestName bounds the names that are kept.
const longestName = 64

// Whose extracts a user and a template from the description of a stay: "user/template", anything behind a blank dropped; the name in
// brackets in a node's description of a foreign process; else all of it. Digits are ignored: they count and do not name.
func Whose(source string) (user, template string) {
	head, _, _ := strings.Cut(source, " ")
	if u, t, ok := strings.Cut(head, "/"); ok {
		return clip(u), clip(t)
	}
	if _, in, ok := strings.Cut(source, "("); ok {
		if name, _, ok := strings.Cut(in, ")"); ok {
			return "", clip(name)
		}
	}
	var b strings.Builder
	for _, r := range source {
		if r < '0' || r > '9' {
			b.WriteRune(r)
		}
	}
	return "", clip(b.String())
}

func clip(s string) string { return s[:min(len(s), longestName)] }
