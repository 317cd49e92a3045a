// Command etcdwal is what a program weighs that has etcd's write-ahead log.
package main

import (
	"fmt"
	"os"

	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"
)

func main() { fmt.Println(wal.Create(zap.NewNop(), os.Args[1], nil)) }
