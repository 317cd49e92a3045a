//go:build kubernetes

package operator

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/edge/store"
	"sluice.dev/sluice/internal/face/api"
)

func newDesk(s api.Service, lender store.Lender, admitted func(namespace, queue string) error, client dynamic.Interface, o *Options) *desk {
	return &desk{
		service: s, store: lender, admitted: admitted, client: client, log: o.Log, operator: o.Name,
		asked: dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, resync, o.Watch, nil).ForResource(requests).Informer(),
		work: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](100*time.Millisecond,
			time.Minute)),
	}
}

// run answers until ctx ends. Where Requests are not defined, or we may not watch them, the rest of the operator works without.
func (d *desk) run(ctx context.Context) error {
	add := func(o any) {
		if key, err := cache.MetaNamespaceKeyFunc(o); err == nil {
			d.work.Add(key)
		}
	}
	gone := func(o any) { // deleted by its client: clear its place
		if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = last.Obj
		}
		if o, ok := o.(*object); ok && ask(o, "ask") == config.AskUpload && d.store != nil {
			d.work.Add(placeKey + d.place(o))
		}
	}
	if _, err := d.asked.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, o any) { add(o) },
		DeleteFunc: gone}); err != nil {
		return err
	}
	var done sync.WaitGroup
	defer done.Wait()
	defer d.work.ShutDown()
	done.Go(func() { d.asked.Run(ctx.Done()) })
	if !cache.WaitForCacheSync(ctx.Done(), d.asked.HasSynced) {
		return nil
	}
	for range clerks {
		done.Go(func() { serve(ctx, d.work, d.log, "a request is looked at again", d.turn) })
	}
	<-ctx.Done()
	return nil
}

// turn answers a Request, or removes it, and says when to look again.
func (d *desk) turn(ctx context.Context, key string) (time.Duration, error) {
	if place, ok := strings.CutPrefix(key, placeKey); ok {
		return 0, d.store.Drop(ctx, place)
	}
	found, there, err := d.asked.GetStore().GetByKey(key)
	o, ok := found.(*object)
	if err != nil || !there || !ok {
		return 0, err
	}
	who, _, _ := unstructured.NestedString(o.Object, "status", "operator")
	left := lingers - time.Since(o.GetCreationTimestamp().Time)
	// another operator's
	if named := ask(o, "operator"); who != "" && who != d.operator || who == "" && named != "" && named != d.operator {
		if left += lingers; left > 0 { // unless that operator is gone for good
			return left, nil
		}
	}
	if left <= 0 {
		return 0, d.remove(ctx, o)
	}
	for _, c := range conditionsOf(o) {
		if c.Type == answered && c.ObservedGeneration == o.GetGeneration() {
			return left, nil
		}
	}
	said, err := d.answer(ctx, o)
	if ctx.Err() != nil {
		return 0, err
	}
	v := verdict{metav1.ConditionTrue, answered, "", o.GetGeneration()}
	if err != nil {
		said, v = map[string]any{}, no(o.GetGeneration(), KindWord(errkind.Of(err)), err.Error())
	}
	said["operator"], said["observedGeneration"], said["conditions"] = d.operator, o.GetGeneration(),
		plain([]metav1.Condition{condition(answered, v, nil)})
	// the version lets only one operator answer
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": o.GetUID(), "resourceVersion": o.GetResourceVersion()},
		"status": said})
	if err != nil {
		return 0, err
	}
	_, err = d.client.Resource(requests).Namespace(o.GetNamespace()).Patch(ctx, o.GetName(), types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: manager}, "status")
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // deleted, or changed and so to be seen again
		return 0, nil
	}
	return left, err
}

// remove deletes a Request that its client has left.
func (d *desk) remove(ctx context.Context, o *object) error {
	uid := o.GetUID()
	err := d.client.Resource(requests).Namespace(o.GetNamespace()).Delete(ctx, o.GetName(),
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// KindWord is an error's kind as a condition's reason, such as NotFound. KindOf is its inverse, Unknown for other words.
func KindWord(k errkind.Kind) string {
	var b strings.Builder
	for _, word := range strings.Fields(k.String()) {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

// KindOf parses a KindWord.
func KindOf(word string) errkind.Kind {
	for k := errkind.Unknown; k <= errkind.Corrupt; k++ {
		if KindWord(k) == word {
			return k
		}
	}
	return errkind.Unknown
}
