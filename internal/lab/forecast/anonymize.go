package forecast

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
)

// Anonymize replaces the names of partitions and of kinds of devices by words that are made of them with a key: the same for the same name
// under the same key, and not to be undone without it. The places of what is odd in the record go, which name files and jobs, and the name
// of an owner's own backlog. Users and nodes are in no answer.
func (a *Answer) Anonymize(key []byte) {
	for _, list := range [][]Part{a.Gaps.Partitions, a.Gaps.Kinds} {
		for i := range list {
			if name := list[i].Name; name != "" {
				sum := hmac.New(sha256.New, key)
				_, _ = sum.Write([]byte(name)) // it has no errors
				list[i].Name = "x" + hex.EncodeToString(sum.Sum(nil)[:4])
			}
		}
	}
	for i := range a.Odd {
		a.Odd[i].Places = nil
	}
	for i := range a.Outcomes {
		if o := &a.Outcomes[i]; o.Name == yours {
			o.Doc = "jobs of your own"
		}
	}
}
