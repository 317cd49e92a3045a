//go:build !(cgo && linux && nvml)

package nvml

import (
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/inventory"
)

// Open says that this build can't see GPUs; the error is of kind Unsupported.
func Open(spec string) (inventory.Inventory, error) {
	if _, err := parseSpec(spec); err != nil {
		return nil, err
	}
	return nil, errkind.Errorf(errkind.Unsupported, "NVML support is not in this build; build on Linux with CGO_ENABLED=1 and -tags nvml")
}
