// Command bolt is what a program weighs that has bbolt.
package main

import (
	"fmt"
	"os"

	bolt "go.etcd.io/bbolt"
)

func main() { fmt.Println(bolt.Open(os.Args[1], 0o600, nil)) }
