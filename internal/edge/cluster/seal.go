package cluster

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// Seal is by what an operator knows that a Pod's record (AnnotationRun) is its own word, and about that Pod: whoever may write Pods may write labels and annotations. Empty: it
// has no key.
func Seal(key []byte, namespace, name, record string) string {
	if len(key) == 0 {
		return ""
	}
	h := hmac.New(sha256.New, key)
	h.Write([]byte(namespace + "/" + name + "\n" + record))
	return hex.EncodeToString(h.Sum(nil))
}

// Sealed says whether the record among a Pod's annotations is what whoever has the key wrote. Without a key everything is believed, and what has no seal if its Pod was created
// before the key was made: the API server says when that was.
func Sealed(key []byte, made, created time.Time, namespace, name string, annotations map[string]string) bool {
	want, has := Seal(key, namespace, name, annotations[AnnotationRun]), annotations[AnnotationSeal]
	return want == "" || has == "" && created.Before(made) || hmac.Equal([]byte(want), []byte(has))
}
