package config

import (
	"time"

	"sluice.dev/sluice/internal/core/civil"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/timezone"
)

// SlicePoolKind is the kind of a file of one pool of slices.
const SlicePoolKind = "SlicePool"

// Bounds of a pool.
const (
	maxPoolParts = 100
	// DefaultNotice is how long before its slice is given back a subjob is told.
	DefaultNotice = 30 * time.Second
)

// SlicePool is what of a Kubernetes cluster is offered.
type SlicePool struct {
	Name string
	// Nodes are labels that a machine must have; none: every machine counts.
	Nodes     map[string]string
	Classes   []DeviceClass
	Resources []ExtendedResource
	// Tolerates are the keys of taints that its Pods tolerate.
	Tolerates []string
	Calendar  []Closing
	// Notice is how long before its slice is given back a subjob is told. Keeps: nothing is given back, whoever waits.
	Notice time.Duration
	Keeps  bool
}

// DeviceClass is devices of one driver (DRA). Memory in bytes and Speed in parts per thousand, where devices do not say; 0: they do.
type DeviceClass struct {
	Name, Driver string
	Attributes   map[string]string
	Memory       quantity.Amount
	Speed        int64
}

// ExtendedResource is what a device plugin publishes. Memory in bytes and Speed in parts per thousand; 0: what is known of such a profile.
type ExtendedResource struct {
	Name, Model, Profile string
	Memory               quantity.Amount
	Speed                int64
}

// Closing is time from Start to End, and again each Every (0: once), or as a calendar says by the clock of a time zone: then Start
// and End are its first occurrence.
type Closing struct {
	Name       string
	Start, End quantity.Instant
	Every      time.Duration
	Calendar   civil.Calendar
}

// exampleCalendar is shown wherever a calendar is described.
const exampleCalendar = "[{name: serving, from: 2026-03-02T08:00:00+01:00, to: 2026-03-02T20:00:00+01:00, " +
	"zone: Europe/Berlin, days: mon-fri}]"

// slicePoolFile is everything a file of one pool may say.
func slicePoolFile() form {
	memory := func(without string) field {
		return field{key: "memory", form: anAmount(1), unset: without, example: "10Gi",
			doc: "Its memory. A device of which nothing says it is not offered."}
	}
	speed := func(without string) field {
		return field{key: "speed", form: aShare(1000, 1, 1000, 0), unset: without, example: "0.14", doc: "Its speed as a share of a whole GPU's."}
	}
	return anObject(
		field{key: "apiVersion", need: true, form: aChoice(APIVersion), example: APIVersion, doc: "The version of this form."},
		field{key: "kind", need: true, form: aChoice(SlicePoolKind), example: SlicePoolKind, doc: "What the file describes."},
		field{key: "metadata", need: true, form: anObject(
			field{key: "name", need: true, form: form{kind: isName}, example: "a100", doc: "The name of the pool. A device that several pools name is of the first, in order of name."},
		), example: "{name: a100}", doc: "What the pool is called."},
		field{key: "spec", need: true, form: anObject(
			field{key: "nodeSelector", form: aTable(aText("text"), maxPoolParts), unset: "every machine", example: "{nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB}", doc: "Labels that a machine must have."},
			field{key: "deviceClasses", form: aList("a list of device classes such as [{name: mig.nvidia.com, driver: gpu.nvidia.com}]", anObject(
				field{key: "name", need: true, form: aText("the name of a DeviceClass"), example: "mig.nvidia.com", doc: "The DeviceClass that claims name."},
				field{key: "driver", need: true, form: aText("the name of a driver"), example: "gpu.nvidia.com", doc: "The driver whose devices these are."},
				field{key: "attributes", form: aTable(aText("text"), maxPoolParts), unset: "any device", example: "{profile: 1g.10gb}", doc: "Attributes that a device must have, by their names without a domain."},
				memory("what the device says, or is known of its profile"), speed("what is known of its profile"),
			), maxPoolParts), unset: "none", example: "[{name: mig.nvidia.com, driver: gpu.nvidia.com}]", doc: "Devices that drivers publish (DRA), the preferred first. A pool has these, or extendedResources, or both."},
			field{key: "extendedResources", form: aList("a list of resources such as [{name: nvidia.com/mig-1g.10gb}]", anObject(
				field{key: "name", need: true, form: aText("a resource such as nvidia.com/mig-1g.10gb"), example: "nvidia.com/mig-1g.10gb", doc: "The resource as Pods ask for it."},
				field{key: "model", form: aText("a model such as A100-SXM4-80GB"), unset: "what labels say", example: "A100-SXM4-80GB",
					doc: "The model of the GPUs, as NVIDIA or a label names it."},
				field{key: "profile", form: aText("a profile such as 1g.10gb"), unset: "what labels or the name say", example: "1g.10gb",
					doc: "The profile of the slices, as speeds of jobs name it."},
				memory("what labels say, or is known of its profile"), speed("what is known of its profile"),
			), maxPoolParts), unset: "none", example: "[{name: nvidia.com/mig-1g.10gb}]",
				doc: "Resources that device plugins publish. Those whose devices are shared between Pods are not offered."},
			field{key: "tolerates", form: aList("a list of keys such as [nvidia.com/gpu]", aText("the key of a taint"), maxPoolParts), unset: "none", example: "[nvidia.com/gpu]", doc: "Keys of taints that our Pods tolerate: machines with others are not offered."},
			field{key: "calendar", form: aList("a list such as "+exampleCalendar, anObject(
				field{key: "name", need: true, form: aText("what for"), example: "serving", doc: "What for."},
				field{key: "from", need: true, form: form{kind: isMoment}, example: "2026-03-02T08:00:00Z", doc: "When it begins. What runs is over by then."},
				field{key: "to", need: true, form: form{kind: isMoment}, example: "2026-03-02T20:00:00Z", doc: "When it ends."},
				field{key: "every", form: aLength(time.Minute, MaxTime, 0), unset: "once", example: "24h",
					doc: "After what time it comes again. Without zone that is always the same length of time: " +
						"a clock that is put forward or back is not followed."},
				field{key: "zone", form: aText("a time zone such as Europe/Berlin"), unset: "none", example: "Europe/Berlin",
					doc: "The time zone by whose clock it comes again: it begins at the same time of day, " +
						"and ends at the same time of day, also after clocks have changed. Then every is whole days, or days are said."},
				field{key: "days", form: aText("days of the week such as mon-fri"), unset: "all", example: "mon-fri",
					doc: "The days of the week in that zone on which it begins: mon-fri, or sat,sun. " +
						"Needs zone; every is 24h, or left out."},
			), maxPoolParts), unset: "never", example: exampleCalendar, doc: "When the pool is closed."},
			field{key: "giveBack", form: anObject(
				field{key: "notice", form: aLength(time.Second, time.Hour, DefaultNotice), example: "30s", doc: "How long before its slice is given back a subjob is told."},
				field{key: "never", form: form{kind: isBoolean}, example: "true", doc: "Nothing is given back before its time, whoever waits."},
			), unset: "with 30s notice", example: "{notice: 30s}", doc: "What is done where a Pod waits for a device that a subjob holds."},
		), example: "{extendedResources: [{name: nvidia.com/mig-1g.10gb}]}", doc: "A pool of slices: which of a cluster's devices Sluice may use when nobody else does."},
	)
}

// ParseSlicePool reads a file of one pool of slices. It is as strict as ParseJob, and its error alike.
func ParseSlicePool(name string, data []byte) (p SlicePool, err error) {
	c := &collector{file: name, bare: true} // the definition refuses new ones without a unit, and the cluster may have older ones
	file := slicePoolFile()
	for _, doc := range c.documents(data, 1) {
		top := value{c: c, node: doc, form: &file}.asObject()
		c.headed(top)
		p.Name = top.must("metadata").asObject().must("name").label("")
		o := top.must("spec").asObject()
		p.Nodes = o.get("nodeSelector").texts()
		for _, e := range o.get("deviceClasses").asList() {
			one := e.asObject()
			p.Classes = append(p.Classes, DeviceClass{
				Name: one.must("name").named(), Driver: one.must("driver").named(), Attributes: one.get("attributes").texts(),
				Memory: one.get("memory").asAmount(0), Speed: one.get("speed").asShare(),
			})
		}
		for _, e := range o.get("extendedResources").asList() {
			one := e.asObject()
			p.Resources = append(p.Resources, ExtendedResource{
				Name: one.must("name").resource(), Model: one.get("model").asText(), Profile: one.get("profile").asText(),
				Memory: one.get("memory").asAmount(0), Speed: one.get("speed").asShare(),
			})
		}
		if found := c.count(); found == 0 && len(p.Classes)+len(p.Resources) == 0 {
			o.wrong("names no devices; write for example extendedResources: [{name: nvidia.com/mig-1g.10gb}]")
		}
		for _, e := range o.get("tolerates").asList() {
			p.Tolerates = append(p.Tolerates, e.asText())
		}
		for _, e := range o.get("calendar").asList() {
			p.Calendar = append(p.Calendar, closing(e.asObject()))
		}
		back := o.get("giveBack").asObject()
		p.Notice, p.Keeps = back.get("notice").asLength(), back.get("never").boolean()
	}
	if err := c.err(); err != nil {
		return SlicePool{}, err
	}
	return p, nil
}

// closing reads one entry of a calendar.
func closing(o object) Closing {
	found := o.c.count()
	x := Closing{Name: o.must("name").asText(), Start: o.must("from").instant(), End: o.must("to").instant(), Every: o.get("every").asLength()}
	switch length := x.End.Sub(x.Start); {
	case o.c.count() > found:
	case length <= 0:
		o.get("to").wrong("is not after from; want a later moment")
	case o.get("zone").given() || o.get("days").given():
		x.byClock(o)
	case x.Every > 0 && x.Every < length:
		o.get("every").wrong("is %s, and it lasts %s: want it shorter than what it comes again after", formatDuration(x.Every), formatDuration(length))
	}
	return x
}

// byClock has the closing repeat by the clock of a time zone: it makes its calendar, and Start and End the first occurrence.
func (x *Closing) byClock(o object) {
	zone, days := o.get("zone"), o.get("days")
	loc, err := timezone.Load(zone.asText())
	h := timezone.Hours{Zone: zone.asText(), Start: x.Start.Time(), End: x.End.Time(), Every: x.Every}
	if err == nil {
		h.To = x.End.Time().In(loc).Format(time.TimeOnly)
	}
	var no error
	if h.Days, no = civil.ParseDays(days.asText()); no != nil {
		days.wrong("%v", no)
	}
	switch {
	case !zone.given():
		days.wrong("needs zone, such as zone: Europe/Berlin")
	case err != nil:
		zone.wrong("%v", err)
	case x.Every == 0 && !days.given():
		zone.wrong("is for what comes again; add every: 24h, or days such as mon-fri")
	case x.Every != 0 && !timezone.WholeDays(x.Every):
		o.get("every").wrong("is %s; the clock of a time zone is followed by whole days: want a multiple of 24h, or no zone",
			formatDuration(x.Every))
	case no == nil:
		if x.Calendar, x.Start, x.End, err = h.Calendar(time.Now()); err != nil {
			o.get("to").wrong("%v", err)
			return
		}
		x.Every = time.Duration(x.Calendar.Step) * 24 * time.Hour
	}
}

// resource is the name of an extended resource.
func (v value) resource() string {
	s := v.asText()
	for i := range len(s) {
		if s[i] == '/' && i > 0 && i < len(s)-1 {
			return s
		}
	}
	if v.given() {
		v.wrong("is %s; want %s: such resources have a domain in front", v.what(), v.form.want)
	}
	return ""
}

// named is a text that is not empty.
func (v value) named() string {
	s := v.asText()
	if v.given() && s == "" {
		v.wrong("is empty; want %s", v.form.want)
	}
	return s
}

// texts is a mapping of words to text, nil if there is none.
func (v value) texts() map[string]string {
	o := v.asTable()
	if len(o.order) == 0 {
		return nil
	}
	if most := int(v.form.most); len(o.order) > most {
		v.wrong("has %d keys; want at most %d", len(o.order), most)
	}
	out := map[string]string{}
	for _, k := range o.order {
		out[k] = o.get(k).asText()
	}
	return out
}
