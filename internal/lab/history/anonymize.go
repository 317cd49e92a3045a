package history

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"slices"
)

// Anonymize replaces users, accounts and names of jobs by words that are made of them with a key: the same for the same text under
// the same key, and not to be undone without it. Partitions, kinds and nodes stay as they are.
func (h *History) Anonymize(key []byte) {
	hidden := make([]bool, len(h.Names))
	shown := make([]bool, len(h.Names))
	for i := range h.Runs {
		r := &h.Runs[i]
		hidden[r.User], hidden[r.Account], hidden[r.Job] = true, true, true
		shown[r.Partition], shown[r.QOS] = true, true
	}
	// A text may be both, such as a user and a partition of one name: the hashed one is then a name of its own.
	to := make([]Name, len(h.Names))
	names := []string{""}
	for i, text := range h.Names {
		if i > 0 && hidden[i] {
			sum := hmac.New(sha256.New, key)
			sum.Write([]byte(text))
			to[i] = Name(len(names))
			names = append(names, "x"+hex.EncodeToString(sum.Sum(nil)[:8]))
		}
	}
	keep := make([]Name, len(h.Names))
	for i, text := range h.Names {
		if i > 0 && shown[i] {
			keep[i] = Name(len(names))
			names = append(names, text)
		}
	}
	place := make([]Name, len(names))
	order := sorted(names)
	texts := make([]string, 0, len(names))
	for _, n := range order {
		if k := len(texts); k == 0 || texts[k-1] != names[n] {
			texts = append(texts, names[n])
		}
		place[n] = Name(len(texts) - 1)
	}
	for i := range h.Runs {
		r := &h.Runs[i]
		r.User, r.Account, r.Job = place[to[r.User]], place[to[r.Account]], place[to[r.Job]]
		r.Partition, r.QOS = place[keep[r.Partition]], place[keep[r.QOS]]
	}
	h.Names = slices.Clip(texts)
}
