//go:build kubernetes

package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/config"
)

const (
	// lookAgain is how often it is looked at what is left out, and soon after pools have changed, by when the inventory has seen to it.
	lookAgain = time.Minute
	soon      = 5 * time.Second
)

// mostPools is the inventory's own bound.
const mostPools = 64

// readPools reads the SlicePools at the start.
func readPools(ctx context.Context, client dynamic.Interface) ([]config.SlicePool, error) {
	list, err := client.Resource(slicePools).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, errkind.Errorf(errkind.Unavailable, "list the SlicePools: %w: are the custom resources' definitions there?", err)
	}
	var all []*object
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	pools, _ := poolsOf(all)
	return pools, nil
}

// poolsOf parses SlicePools, by name, with a verdict for each. An invalid one does not keep others from being offered.
func poolsOf(list []*object) (pools []config.SlicePool, verdicts map[*object]verdict) {
	verdicts = map[*object]verdict{}
	for _, o := range list {
		if o.GetDeletionTimestamp() != nil {
			continue
		}
		p, err := config.ParseSlicePool(o.GetName(), FileOf(o))
		if err != nil {
			verdicts[o] = no(o.GetGeneration(), invalid, placed(err).Error())
			continue
		}
		pools, verdicts[o] = append(pools, p), yes(o.GetGeneration(), "its devices are offered when nobody else has them")
	}
	slices.SortFunc(pools, func(a, b config.SlicePool) int { return cmp.Compare(a.Name, b.Name) })
	if len(pools) > mostPools {
		for _, p := range pools[mostPools:] {
			i := slices.IndexFunc(list, func(o *object) bool { return o.GetName() == p.Name })
			verdicts[list[i]] = no(list[i].GetGeneration(), "TooMany",
				fmt.Sprintf("%d pools are offered, in order of name, and this one comes after them", mostPools))
		}
		pools = pools[:mostPools]
	}
	return pools, verdicts
}

// lookAtPools writes each SlicePool's verdict, and offers the pools if they changed. after is when to look again.
func (c *controller) lookAtPools(ctx context.Context) (after time.Duration, _ error) {
	var list []*object
	for _, key := range c.pools.GetStore().ListKeys() {
		o, err := c.object(c.pools, key)
		if err != nil {
			return 0, err
		}
		if o != nil {
			list = append(list, o)
		}
	}
	now, verdicts := poolsOf(list)
	for o, v := range verdicts {
		if v.status == metav1.ConditionTrue && c.offers.leftOut != nil {
			if left := c.offers.leftOut(o.GetName()); left != "" {
				v.message += "; " + left
				verdicts[o] = v
			}
		}
	}
	if err := c.say(ctx, verdicts); err != nil {
		return 0, err
	}
	if reflect.DeepEqual(now, c.offers.now) {
		return lookAgain, nil
	}
	err := c.offers.set(now)
	if errkind.Of(err) == errkind.Invalid { // the parser let it through: the old pools stay until the objects change
		c.log.Error("the pools are offered as they were before", "error", err)
		err = nil
	}
	if err == nil {
		c.offers.now = now
		c.log.Info("other pools are offered", "pools", len(now))
	}
	return soon, err
}

// say writes verdicts to the objects that do not have them yet.
func (c *controller) say(ctx context.Context, verdicts map[*object]verdict) error {
	var errs []error
	for o, v := range verdicts {
		old := conditionsOf(o)
		if len(old) == 1 && old[0].Message == v.message && old[0].Reason == v.reason && old[0].ObservedGeneration == v.generation {
			continue
		}
		said := map[string]any{"observedGeneration": v.generation, "conditions": plain([]metav1.Condition{condition(accepted, v, old)})}
		errs = append(errs, c.apply(ctx, o, said))
	}
	return errors.Join(errs...)
}
