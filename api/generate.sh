#!/bin/sh
# Makes the Go code of the API from its .proto files. Needs protoc (3.21 or later) on the PATH and its own .proto files
# (Debian: protobuf-compiler and libprotobuf-dev); the two plugins are
# installed at the versions below into a temporary folder, so that everybody's output is the same.
set -eu
cd "$(dirname "$0")"
bin="$(mktemp -d)"
trap 'rm -rf "$bin"' EXIT
GOBIN="$bin" go install google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12
GOBIN="$bin" go install connectrpc.com/connect/cmd/protoc-gen-connect-go@v1.21.1
PATH="$bin:$PATH" protoc --proto_path=. \
	--go_out=. --go_opt=paths=source_relative \
	--connect-go_out=. --connect-go_opt=paths=source_relative \
	sluice/v1alpha1/*.proto
# The protoc version is not part of the contract: leave it out, so that another one makes no difference.
sed -i -e '/^\/\/ 	protoc  *(*v[0-9.]*)*$/d' -e '/^\/\/ 	protoc .*v[0-9.]*$/d' sluice/v1alpha1/*.pb.go
# Nobody embeds the handler that answers "not implemented": what the API has is implemented, or it does not compile.
sed -i -e '/^\/\/ Unimplemented.*Handler returns CodeUnimplemented/,$d' -e '/^\terrors "errors"$/d' sluice/v1alpha1/sluicev1alpha1connect/*.connect.go
gofmt -w sluice
