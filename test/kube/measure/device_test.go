//go:build kubernetes

package measure

import (
	"fmt"

	"sluice.dev/sluice/internal/core/quantity"
	inventories "sluice.dev/sluice/internal/edge/inventory/kubernetes"
	"sluice.dev/sluice/test/kube/plane"
)

// device is what the Pods of a world ask for: of which a machine has some.
type device struct {
	// resource is its name as an extended one, of which a machine has pieces.
	resource string
	pieces   int
	// class is its class under DRA, selector what a claim says besides, attributes what a pool does.
	class, selector string
	attributes      map[string]string
	// quota is how Kueue calls it under DRA, and memory what a pool has to say of the extended one, in bytes; 0: nothing.
	quota  string
	memory int64
}

// small is the smallest piece of a GPU, of which a machine has seven, and whole a machine's one GPU.
var (
	small = device{resource: mig, pieces: pieces, class: plane.MIGClass, attributes: map[string]string{"profile": profile},
		selector: fmt.Sprintf(`device.attributes[%q].profile == %q`, plane.Driver, profile)}
	whole = device{resource: "nvidia.com/gpu", pieces: 1, class: plane.GPUClass, quota: plane.GPUQuota, memory: 80 << 30}
)

// pool offers it: as a SlicePool says it, and as the inventory reads it.
func (d device) pool(by By) (string, inventories.Pool) {
	if by == DRA {
		text := fmt.Sprintf("deviceClasses: [{name: %s, driver: %s", d.class, plane.Driver)
		if len(d.attributes) > 0 {
			text += ", attributes: {profile: " + d.attributes["profile"] + "}"
		}
		return text + "}]", inventories.Pool{Name: "all",
			Classes: []inventories.Class{{Name: d.class, Driver: plane.Driver, Attributes: d.attributes}}}
	}
	r := inventories.Resource{Name: d.resource}
	text := "extendedResources: [{name: " + d.resource
	if d.memory > 0 {
		text += fmt.Sprintf(", memory: %dMi", d.memory>>20)
		r.Memory = quantity.Amount(d.memory)
	}
	return text + "}]", inventories.Pool{Name: "all", Resources: []inventories.Resource{r}}
}
