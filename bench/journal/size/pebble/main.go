// Command pebble is what a program weighs that has pebble.
package main

import (
	"fmt"
	"os"

	"github.com/cockroachdb/pebble/v2"
)

func main() { fmt.Println(pebble.Open(os.Args[1], &pebble.Options{})) }
