// Package wire holds the API's .proto files (sluice/v1alpha1) and the Go code made from them, which is committed so that
// a build needs no protoc. Nothing here is written by hand but the .proto files; generate.sh makes the rest again.
// It must not know how the daemon works: the face wing turns these messages into calls and back.
package wire
