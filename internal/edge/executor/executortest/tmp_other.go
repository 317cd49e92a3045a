//go:build !linux

package executortest

// LeaveTmp does nothing where no subjob has a /tmp of its own.
func LeaveTmp() (done func()) { return func() {} }
