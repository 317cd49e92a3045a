//go:build !kubernetes

package kubernetes

import (
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/provider"
)

// Open says that this build has no Kubernetes in it. Errors: Invalid with all that is wrong with the options, else Unsupported.
func Open(o Options) (provider.Provider, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	return nil, errkind.Errorf(errkind.Unsupported, "kubernetes: this program was built without the tag kubernetes: "+
		"`make build TAGS=\"s3 kubernetes\"` makes one that has it")
}
