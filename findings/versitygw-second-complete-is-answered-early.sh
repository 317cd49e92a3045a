#!/usr/bin/env bash
set -e -u -o pipefail
#
# versitygw answers the second of two who complete the same multipart upload with success while it still puts the object together for
# the first: the object is not there yet, and where the first fails it never will be.
#
# Version: github.com/versity/versitygw v1.8.0, backend posix; asked by github.com/minio/minio-go/v7 v7.4.1.
# Says:    Amazon S3's user guide: CompleteMultipartUpload assembles the parts, and after a successful write a read or a list sees the
#          object at once. backend/posix/posix.go calls the early answer "success for idempotency".
# Does:    of two calls one waits for the object; the other is answered at once, with 200 and the object's ETag, and HeadObject after it
#          says 404.
# So:      writers of content-addressed objects, who meet at one upload by design, and clients that repeat a call whose answer they lost,
#          take for stored what is not. Look for the object after every completion.
# Output, seen on 2026-11-29 with Go 1.26.8:
#   both completions succeed: true; objects missing just after an answer: 1 of 2; a second later: 0
#
# Needs Go, its module proxy and 1 GB of disk without reflinks (a server that only links parts is too fast to be seen). Ends with 0 if that is still so, with 1 if it has changed.
dir=$(mktemp -d)
trap '[ -z "${server:-}" ] || kill "$server" 2>/dev/null; rm -rf "$dir"' EXIT
cd "$dir"
mkdir -p data/bucket
GOBIN="$dir" GOFLAGS=-mod=mod go install github.com/versity/versitygw/cmd/versitygw@v1.8.0 2>/dev/null
cat > go.mod <<'END'
module finding

go 1.26.0

require github.com/minio/minio-go/v7 v7.4.1
END
cat > main.go <<'END'
package main

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func main() {
	ctx := context.Background()
	const bucket, key, parts, size = "bucket", "object", 6, 64 << 20
	core := must(minio.NewCore("127.0.0.1:17071", &minio.Options{Creds: credentials.NewStaticV4("access", "a-secret-of-tests", ""), Region: "us-east-1"}))
	for {
		if there, err := core.BucketExists(ctx, bucket); err == nil && there {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	id := must(core.NewMultipartUpload(ctx, bucket, key, minio.PutObjectOptions{}))
	var done []minio.CompletePart
	data := bytes.Repeat([]byte("0123456789abcdef"), size/16)
	for n := 1; n <= parts; n++ {
		p := must(core.PutObjectPart(ctx, bucket, key, id, n, bytes.NewReader(data), size, minio.PutObjectPartOptions{}))
		done = append(done, minio.CompletePart{PartNumber: n, ETag: p.ETag})
	}
	var group sync.WaitGroup
	var good, missing atomic.Int32
	for range 2 {
		group.Go(func() {
			if _, err := core.CompleteMultipartUpload(ctx, bucket, key, id, done, minio.PutObjectOptions{}); err != nil {
				return
			}
			good.Add(1)
			if _, err := core.StatObject(ctx, bucket, key, minio.StatObjectOptions{}); minio.ToErrorResponse(err).StatusCode == 404 {
				missing.Add(1)
			}
		})
	}
	group.Wait()
	time.Sleep(time.Second)
	later := 0
	if _, err := core.StatObject(ctx, bucket, key, minio.StatObjectOptions{}); err != nil {
		later = 1
	}
	fmt.Printf("both completions succeed: %v; objects missing just after an answer: %d of 2; a second later: %d\n", good.Load() == 2, missing.Load(), later)
}
END
export GOFLAGS=-mod=mod GOWORK=off CGO_ENABLED=0
go mod tidy >/dev/null 2>&1
go build -o main .
ROOT_ACCESS_KEY=access ROOT_SECRET_KEY=a-secret-of-tests ./versitygw --quiet --port 127.0.0.1:17071 posix "$dir/data" >/dev/null 2>&1 &
server=$!
seen=$(timeout 120 ./main)
printf '%s\n' "$seen"
want='both completions succeed: true; objects missing just after an answer: 1 of 2; a second later: 0'
[ "$seen" = "$want" ] || { printf 'it has changed: want\n%s\n' "$want" >&2; exit 1; }
