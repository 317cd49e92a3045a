//go:build !linux

package peer

import (
	"errors"
	"net"
)

type kernel struct{}

func (kernel) owner(ends) (uint32, error)       { return 0, errors.ErrUnsupported }
func (kernel) close() error                     { return nil }
func credentials(*net.UnixConn) (uint32, error) { return 0, errors.ErrUnsupported }
func fromTable(ends) (uint32, error)            { return 0, errors.ErrUnsupported }
func established(*net.TCPConn) error            { return errors.ErrUnsupported }
