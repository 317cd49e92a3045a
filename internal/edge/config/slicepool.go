package config

import (
	"time"

	"sluice.dev/sluice/internal/core/civil"
	"sluice.dev/sluice/internal/core/departure"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/strict"
	"sluice.dev/sluice/internal/edge/timezone"
)

// SlicePoolKind is the kind of a file of one pool of slices.
const SlicePoolKind = "SlicePool"

// Bounds of a pool.
const (
	maxPoolParts = 100
	// DefaultNotice is how long before its slice is given back a subjob is warned.
	DefaultNotice = 30 * time.Second
)

// SlicePool is what of a Kubernetes cluster is offered.
type SlicePool = cluster.Pool

// exampleCalendar is shown wherever a calendar is described.
const exampleCalendar = "[{name: serving, from: 2026-03-02T08:00:00+01:00, to: 2026-03-02T20:00:00+01:00, " +
	"zone: Europe/Berlin, days: mon-fri}]"

// slicePoolFile is everything a file of one pool may say.
func slicePoolFile() strict.Form {
	memory := func(without string) strict.Field {
		return strict.Field{Key: "memory", Form: strict.AnAmount(1), Unset: without, Example: "10Gi",
			Doc: "Its memory. A device of which nothing says it is not offered."}
	}
	speed := func(without string) strict.Field {
		return strict.Field{Key: "speed", Form: strict.AShare(1000, 1, 1000, 0), Unset: without, Example: "0.14",
			Doc: "Its speed as a share of a whole GPU's."}
	}
	return strict.AnObject(
		strict.Field{Key: "apiVersion", Need: true, Form: strict.AChoice(APIVersion), Example: APIVersion,
			Doc: "The version of this form."},
		strict.Field{Key: "kind", Need: true, Form: strict.AChoice(SlicePoolKind), Example: SlicePoolKind, Doc: "What the file describes."},
		strict.Field{Key: "metadata", Need: true, Form: strict.AnObject(
			strict.Field{Key: "name", Need: true, Form: strict.Form{Kind: strict.IsName}, Example: "a100",
				Doc: "The name of the pool. A device that several pools name is of the first, in order of name."},
		), Example: "{name: a100}", Doc: "What the pool is called."},
		strict.Field{Key: "spec", Need: true, Form: strict.AnObject(
			strict.Field{Key: "nodeSelector", Form: strict.ATable(strict.AText("text"), maxPoolParts), Unset: "every machine",
				Example: "{nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB}", Doc: "Labels that a machine must have."},
			strict.Field{Key: "deviceClasses", Form: strict.AList("a list of device classes such as [{name: mig.nvidia.com, driver: "+
				"gpu.nvidia.com}]", strict.AnObject(
				strict.Field{Key: "name", Need: true, Form: strict.AText("the name of a DeviceClass"), Example: "mig.nvidia.com",
					Doc: "The DeviceClass that claims name."},
				strict.Field{Key: "driver", Need: true, Form: strict.AText("the name of a driver"), Example: "gpu.nvidia.com",
					Doc: "The driver whose devices these are."},
				strict.Field{Key: "attributes", Form: strict.ATable(strict.AText("text"), maxPoolParts), Unset: "any device",
					Example: "{profile: 1g.10gb}", Doc: "Attributes that a device must have, by their names without a domain."},
				memory("what the device says, or is known of its profile"), speed("what is known of its profile"),
			), maxPoolParts), Unset: "none", Example: "[{name: mig.nvidia.com, driver: gpu.nvidia.com}]",
				Doc: "Devices that drivers publish (DRA), the preferred first. A pool has these, or extendedResources, or both."},
			strict.Field{Key: "extendedResources", Form: strict.AList("a list of resources such as [{name: nvidia.com/mig-1g.10gb}]",
				strict.AnObject(
					strict.Field{Key: "name", Need: true, Form: strict.AText("a resource such as nvidia.com/mig-1g.10gb"),
						Example: "nvidia.com/mig-1g.10gb", Doc: "The resource as Pods ask for it."},
					strict.Field{Key: "model", Form: strict.AText("a model such as A100-SXM4-80GB"), Unset: "what labels say",
						Example: "A100-SXM4-80GB",
						Doc:     "The model of the GPUs, as NVIDIA or a label names it."},
					strict.Field{Key: "profile", Form: strict.AText("a profile such as 1g.10gb"), Unset: "what labels or the name say",
						Example: "1g.10gb",
						Doc:     "The profile of the slices, as speeds of jobs name it."},
					memory("what labels say, or is known of its profile"), speed("what is known of its profile"),
				), maxPoolParts), Unset: "none", Example: "[{name: nvidia.com/mig-1g.10gb}]",
				Doc: "Resources that device plugins publish. Those whose devices are shared between Pods are not offered."},
			strict.Field{Key: "tolerates", Form: strict.AList("a list of keys such as [nvidia.com/gpu]", strict.AText("the key of a taint"),
				maxPoolParts), Unset: "none", Example: "[nvidia.com/gpu]",
				Doc: "Keys of taints that our Pods tolerate: machines with others are not offered."},
			strict.Field{Key: "calendar", Form: strict.AList("a list such as "+exampleCalendar, strict.AnObject(
				strict.Field{Key: "name", Need: true, Form: strict.AText("what for"), Example: "serving", Doc: "What for."},
				strict.Field{Key: "from", Need: true, Form: strict.Form{Kind: strict.IsMoment}, Example: "2026-03-02T08:00:00Z",
					Doc: "When it begins. What runs is over by then."},
				strict.Field{Key: "to", Need: true, Form: strict.Form{Kind: strict.IsMoment}, Example: "2026-03-02T20:00:00Z",
					Doc: "When it ends."},
				strict.Field{Key: "every", Form: strict.ALength(time.Minute, MaxTime, 0), Unset: "once", Example: "24h",
					Doc: "After what time it comes again. Without zone that is always the same length of time: " +
						"a clock that is put forward or back is not followed."},
				strict.Field{Key: "zone", Form: strict.AText("a time zone such as Europe/Berlin"), Unset: "none", Example: "Europe/Berlin",
					Doc: "The time zone by whose clock it comes again: it begins at the same time of day, " +
						"and ends at the same time of day, also after clocks have changed. Then every is whole days, or days are said."},
				strict.Field{Key: "days", Form: strict.AText("days of the week such as mon-fri"), Unset: "all", Example: "mon-fri",
					Doc: "The days of the week in that zone on which it begins: mon-fri, or sat,sun. " +
						"Needs zone; every is 24h, or left out."},
			), maxPoolParts), Unset: "never", Example: exampleCalendar, Doc: "When the pool is closed."},
			strict.Field{Key: "giveBack", Form: strict.AnObject(
				strict.Field{Key: "notice", Form: strict.ALength(time.Second, time.Hour, DefaultNotice), Example: "30s",
					Doc: "How long before its slice is given back a subjob is told."},
				strict.Field{Key: "never", Form: strict.Form{Kind: strict.IsBoolean}, Example: "true",
					Doc: "Nothing is given back before its time, whoever waits."},
			), Unset: "with 30s notice", Example: "{notice: 30s}", Doc: "What is done where a Pod waits for a device that a subjob holds."},
			strict.Field{Key: "ownerless", Form: strict.ALength(0, MaxTime, departure.Ownerless), Example: "60s",
				Doc: "For how long a subjob goes on that hears nothing of its operator, who may be dead: " +
					"then it yields, as for a Pod that waits. From 10s; 0s: to its lease's end."},
		), Example: "{extendedResources: [{name: nvidia.com/mig-1g.10gb}]}",
			Doc: "A pool of slices: which of a cluster's devices Sluice may use when nobody else does."},
	)
}

// ParseSlicePool reads a file of one pool of slices. It is as strict as ParseJob, and its error alike.
func ParseSlicePool(name string, data []byte) (p SlicePool, err error) {
	c := strict.New(name, true) // the definition refuses new ones without a unit, and the cluster may have older ones
	file := slicePoolFile()
	for _, doc := range c.Documents(data, 1) {
		top := c.Root(doc, &file).AsObject()
		headed(top)
		p.Name = top.Must("metadata").AsObject().Must("name").Label("")
		o := top.Must("spec").AsObject()
		p.Nodes = textsOf(o.Get("nodeSelector"))
		for _, e := range o.Get("deviceClasses").AsList() {
			one := e.AsObject()
			p.Classes = append(p.Classes, cluster.Class{
				Name: namedBy(one.Must("name")), Driver: namedBy(one.Must("driver")), Attributes: textsOf(one.Get("attributes")),
				Memory: one.Get("memory").AsAmount(0), Speed: one.Get("speed").AsShare(),
			})
		}
		for _, e := range o.Get("extendedResources").AsList() {
			one := e.AsObject()
			p.Resources = append(p.Resources, cluster.Resource{
				Name: domained(one.Must("name")), Model: one.Get("model").AsText(), Profile: one.Get("profile").AsText(),
				Memory: one.Get("memory").AsAmount(0), Speed: one.Get("speed").AsShare(),
			})
		}
		if found := c.Count(); found == 0 && len(p.Classes)+len(p.Resources) == 0 {
			o.Wrong("names no devices; write for example extendedResources: [{name: nvidia.com/mig-1g.10gb}]")
		}
		for _, e := range o.Get("tolerates").AsList() {
			p.Tolerates = append(p.Tolerates, e.AsText())
		}
		for _, e := range o.Get("calendar").AsList() {
			p.Calendar = append(p.Calendar, closing(e.AsObject()))
		}
		back := o.Get("giveBack").AsObject()
		p.Notice, p.NeverGives = back.Get("notice").AsLength(), back.Get("never").Boolean(false)
		ownerless := o.Get("ownerless")
		if p.Ownerless = ownerless.AsLength(); p.Ownerless > 0 && p.Ownerless < departure.LeastOwnerless {
			ownerless.Wrong("is %s; want %s or more, or 0s for none", strict.FormatDuration(p.Ownerless),
				strict.FormatDuration(departure.LeastOwnerless))
		}
		if p.NeverGives {
			p.Ownerless = 0 // nobody waits for what is never given back
		}
	}
	if err := c.Err(); err != nil {
		return SlicePool{}, err
	}
	return p, nil
}

// closing reads one entry of a calendar.
func closing(o strict.Object) cluster.Closing {
	found := o.Count()
	x := cluster.Closing{Name: o.Must("name").AsText(), Start: o.Must("from").Instant(), End: o.Must("to").Instant(),
		Every: o.Get("every").AsLength()}
	switch length := x.End.Sub(x.Start); {
	case o.Count() > found:
	case length <= 0:
		o.Get("to").Wrong("is not after from; want a later moment")
	case o.Get("zone").Given() || o.Get("days").Given():
		byClock(&x, o)
	case x.Every > 0 && x.Every < length:
		o.Get("every").Wrong("is %s, and it lasts %s: want it shorter than what it comes again after", strict.FormatDuration(x.Every),
			strict.FormatDuration(length))
	}
	return x
}

// byClock has the closing repeat by the clock of a time zone: it makes its calendar, and Start and End the first occurrence.
func byClock(x *cluster.Closing, o strict.Object) {
	zone, days := o.Get("zone"), o.Get("days")
	loc, err := timezone.Load(zone.AsText())
	h := timezone.Hours{Zone: zone.AsText(), Start: x.Start.Time(), End: x.End.Time(), Every: x.Every}
	if err == nil {
		h.To = x.End.Time().In(loc).Format(time.TimeOnly)
	}
	var no error
	if h.Days, no = civil.ParseDays(days.AsText()); no != nil {
		days.Wrong("%v", no)
	}
	switch {
	case !zone.Given():
		days.Wrong("needs zone, such as zone: Europe/Berlin")
	case err != nil:
		zone.Wrong("%v", err)
	case x.Every == 0 && !days.Given():
		zone.Wrong("is for what comes again; add every: 24h, or days such as mon-fri")
	case x.Every != 0 && !timezone.WholeDays(x.Every):
		o.Get("every").Wrong("is %s; the clock of a time zone is followed by whole days: want a multiple of 24h, or no zone",
			strict.FormatDuration(x.Every))
	case no == nil:
		if x.Calendar, x.Start, x.End, err = h.Calendar(time.Now()); err != nil {
			o.Get("to").Wrong("%v", err)
			return
		}
		x.Every = time.Duration(x.Calendar.Step) * 24 * time.Hour
	}
}

// domained is the name of an extended resource.
func domained(v strict.Value) string {
	s := v.AsText()
	for i := range len(s) {
		if s[i] == '/' && i > 0 && i < len(s)-1 {
			return s
		}
	}
	if v.Given() {
		v.Wrong("is %s; want %s: such resources have a domain in front", v.What(), v.Want())
	}
	return ""
}

// namedBy is a text that is not empty.
func namedBy(v strict.Value) string {
	s := v.AsText()
	if v.Given() && s == "" {
		v.Wrong("is empty; want %s", v.Want())
	}
	return s
}

// textsOf is a mapping of words to text, nil if there is none.
func textsOf(v strict.Value) map[string]string {
	o := v.AsTable()
	if len(o.Keys()) == 0 {
		return nil
	}
	if most := int(v.Most()); len(o.Keys()) > most {
		v.Wrong("has %d keys; want at most %d", len(o.Keys()), most)
	}
	out := map[string]string{}
	for _, k := range o.Keys() {
		out[k] = o.Get(k).AsText()
	}
	return out
}
