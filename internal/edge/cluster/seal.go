package cluster

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// Seal authenticates a Pod's record (AnnotationRun) and binds it to the Pod, since whoever may write Pods may write labels and
// annotations. Empty without a key.
func Seal(key []byte, namespace, name, record string) string {
	if len(key) == 0 {
		return ""
	}
	h := hmac.New(sha256.New, key)
	h.Write([]byte(namespace + "/" + name + "\n" + record))
	return hex.EncodeToString(h.Sum(nil))
}

// Sealed reports whether a Pod's record was written by a holder of the key. Without a key every record passes; one without a seal passes
// if the API server created its Pod before the key was made.
func Sealed(key []byte, made, created time.Time, namespace, name string, annotations map[string]string) bool {
	want, has := Seal(key, namespace, name, annotations[AnnotationRun]), annotations[AnnotationSeal]
	return want == "" || has == "" && created.Before(made) || hmac.Equal([]byte(want), []byte(has))
}
