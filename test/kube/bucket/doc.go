// Package bucket is a real S3 server (versitygw, as `make versitygw` builds it) with one bucket, for tests of what keeps things there. It
// can be killed and begun again on what it had. All of it but this file is behind the build tag kubernetes.
package bucket
