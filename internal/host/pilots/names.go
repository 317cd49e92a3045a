package pilots

import (
	"crypto/rand"
	"strings"
)

// partLength is that of the random part of a pilot's name: at a million pilots a year two share one in 10^6 years or so.
const partLength = 8

const letters = "abcdefghijklmnopqrstuvwxyz0123456789"

// part is a random one, for a name that nobody has had.
func part() string {
	var b [partLength]byte
	for i := 0; i < len(b); {
		var r [1]byte
		_, _ = rand.Read(r[:])                                 // never fails (package crypto/rand)
		if n := int(r[0]); n < 256/len(letters)*len(letters) { // else some letters would come more often
			b[i] = letters[n%len(letters)]
			i++
		}
	}
	return string(b[:])
}

// Named reports whether a pilot's name is one of a pool's.
func Named(pool, name string) bool {
	own, ok := strings.CutPrefix(name, pool+"-")
	return ok && len(own) == partLength && strings.Trim(own, letters) == ""
}
