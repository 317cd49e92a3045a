package membership

import (
	"crypto/x509"
	"errors"
	"fmt"
	"strings"

	"connectrpc.com/connect"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/authority"
	"sluice.dev/sluice/internal/edge/fabric/stream"
)

// codes are the RPC codes of errors' kinds.
var codes = map[errkind.Kind]connect.Code{
	errkind.Invalid: connect.CodeInvalidArgument, errkind.NotFound: connect.CodeNotFound, errkind.Exists: connect.CodeAlreadyExists,
	errkind.Conflict: connect.CodeAborted, errkind.Denied: connect.CodePermissionDenied, errkind.Exhausted: connect.CodeResourceExhausted,
	errkind.Unavailable: connect.CodeUnavailable, errkind.Unsupported: connect.CodeUnimplemented, errkind.Corrupt: connect.CodeDataLoss,
}

// answer is an error as the caller gets it. One that nobody has classified is the head's own trouble, which its log has.
func answer(err error) error {
	if code, ok := codes[errkind.Of(err)]; ok {
		return stream.MarkRemoved(connect.NewError(code, err))
	}
	return connect.NewError(connect.CodeInternal, errors.New("the head has failed to do so, and its log says why"))
}

// understood is an error of a call to the head: its own words under their kind, or why it was not reached, which passes by itself unless
// it says what to do.
func understood(head string, err error) error {
	var (
		sent    *connect.Error
		unknown x509.UnknownAuthorityError
		other   x509.HostnameError
		invalid x509.CertificateInvalidError
	)
	switch {
	case stream.SaysRemoved(err) && errors.As(err, &sent):
		return authority.RemovedAs(errkind.Errorf(errkind.Denied, "the head at %s: %s", head, sent.Message()))
	case connect.IsWireError(err) && errors.As(err, &sent):
		for kind, code := range codes {
			if code == sent.Code() {
				return errkind.Errorf(kind, "the head at %s: %s", head, sent.Message())
			}
		}
		return errkind.Errorf(errkind.Unavailable, "the head at %s: %s", head, sent.Message())
	case errors.As(err, &unknown), errors.As(err, &other):
		return errkind.Errorf(errkind.Denied, "what answers at %s is not the head of this machine's cluster: compare the address: %w", head,
			err)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return errkind.Errorf(errkind.Unavailable, "the head at %s shows a certificate that is not good now by this machine's clock: "+
			"compare the clocks of both: %w", head, err)
	case strings.Contains(err.Error(), "tls: expired certificate"): // known by its text alone, and only if it comes in time
		return errkind.Errorf(errkind.Unavailable, "the head at %s takes this machine's certificate for lapsed: compare the clocks of "+
			"both: %w", head, err)
	case errkind.Of(err) != errkind.Unknown:
		return fmt.Errorf("the head at %s: %w", head, err)
	}
	return errkind.Errorf(errkind.Unavailable, "the head at %s can't be reached: %w", head, err)
}
