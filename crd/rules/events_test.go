package rules

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reported is what an event with a time must say.
const reported = `eventTime: "2020-01-01T00:00:00.000000Z", reportingInstance: i, action: a, reason: r, `

// An event is in the namespace of what it is about.
func TestNamespacesOfEvents(t *testing.T) {
	const timed = reported + `reportingComponent: c, `
	const other = "involvedObject.namespace: Invalid value: %q: does not match event.namespace"
	validateAll(t, &CoreEvent, []validationCase{
		{"the same", "{metadata: {namespace: a}, involvedObject: {namespace: a}}", nil},
		{"another", "{metadata: {namespace: a}, involvedObject: {namespace: b}}", []string{fmt.Sprintf(other, "b")}},
		{"default", "{metadata: {namespace: default}}", nil},
		{"none", "{}", []string{`namespace: Invalid value: "": a lowercase RFC 1123 subdomain…`}},
		{"system", "{metadata: {namespace: kube-system}}", []string{fmt.Sprintf(other, "")}},
		{"another, with a time", "{" + timed + "metadata: {namespace: a}, involvedObject: {namespace: b}}", nil},
		{"default, with a time", "{" + timed + "metadata: {namespace: default}}", nil},
		{"system, with a time", "{" + timed + "metadata: {namespace: kube-system}}", nil},
		{"something else, with a time", "{" + timed + "metadata: {namespace: a}}", []string{fmt.Sprintf(other, "")}},
		{"no name", "{metadata: {namespace: A}, involvedObject: {namespace: A}}", []string{`namespace: Invalid value: "A": a lowercase RFC 1123 subdomain…`}},
	})
}

// Events with a time say who reports what.
func TestReportsOfEvents(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	of := func(said string) string {
		return `{eventTime: "2020-01-01T00:00:00.000000Z", metadata: {namespace: default}, ` + said + "}"
	}
	validateAll(t, &CoreEvent, []validationCase{
		{"nothing", of(""), []string{
			"reportingComponent: Required value", `reportingComponent: Invalid value: "": name part must be non-empty`, `reportingComponent: Invalid value: "": name part must consist of…`,
			"reportingInstance: Required value", "action: Required value", "reason: Required value",
		}},
		{"the longest", of("reportingComponent: c, reportingInstance: " + long(128) + ", action: " + long(128) + ", reason: " + long(128) + ", message: " + long(1024)), nil},
		{"longer", of("reportingComponent: c, reportingInstance: " + long(129) + ", action: " + long(129) + ", reason: " + long(129) + ", message: " + long(1025)), []string{
			`reportingInstance: Invalid value: "": can have at most 128 characters`, `action: Invalid value: "": can have at most 128 characters`,
			`reason: Invalid value: "": can have at most 128 characters`, `message: Invalid value: "": can have at most 1024 characters`,
		}},
		{"a wrong controller", of("reportingComponent: a b, reportingInstance: i, action: a, reason: r"), []string{`reportingComponent: Invalid value: "a b": name part must consist of…`}},
	})
	validateAll(t, &Event, []validationCase{
		{"a wrong controller", `{` + reported + `type: Normal, metadata: {name: n, namespace: default}, reportingController: a b}`, []string{`reportingController: Invalid value: "a b": name part must consist of…`}},
	})
}

func TestValidateEventsOfTheNewGroup(t *testing.T) {
	of := func(said string) string {
		return `{` + reported + `metadata: {name: n, namespace: default}, reportingController: c, ` + said + "}"
	}
	validateAll(t, &Event, []validationCase{
		{"a normal one", of("type: Normal"), nil},
		{"a warning", of(`type: Warning, series: {count: 2, lastObservedTime: "2020-01-01T00:00:00.000000Z"}`), nil},
		{"another type", of("type: Strange"), []string{`type: Invalid value: "": has invalid value: Strange`}},
		{"no time", "{metadata: {name: n, namespace: default}, type: Normal}", []string{"eventTime: Required value"}},
		{"no name", `{` + reported + `metadata: {namespace: default}, reportingController: c, type: Normal}`, []string{"metadata.name: Required value: name or generateName is required"}},
		{"a finalizer", `{` + reported + `metadata: {name: n, namespace: default, finalizers: [x]}, reportingController: c, type: Normal}`, []string{`metadata.finalizers[0]: Invalid value: "x": name is neither…`}},
		{"a short series", of("type: Normal, series: {count: 1}"), []string{`series.count: Invalid value: "": should be at least 2`, "series.lastObservedTime: Required value"}},
		{"what is deprecated", of(`type: Normal, deprecatedSource: {host: a}, deprecatedFirstTimestamp: "2020-01-01T00:00:00Z", deprecatedLastTimestamp: "2020-01-01T00:00:00Z", deprecatedCount: 1`), []string{
			`source: Invalid value: "": needs to be unset`, `firstTimestamp: Invalid value: "": needs to be unset`, `lastTimestamp: Invalid value: "": needs to be unset`, `count: Invalid value: "": needs to be unset`,
		}},
	})
	// The core group asks for nothing of this.
	validateAll(t, &CoreEvent, []validationCase{{"of the core group", "{metadata: {namespace: default, finalizers: [x]}, type: Strange, count: 1, series: {count: 1}}", nil}})
}

// Of an event only the series changes, and its metadata.
func TestUpdatesOfEvents(t *testing.T) {
	old := read(t, &Event, `{`+reported+`metadata: {name: n, namespace: default}, reportingController: c, type: Normal, series: {count: 1}}`).(*eventsv1.Event)
	complain(t, Event.Validate(old, old)) // what was wrong with the series stays
	later := old.DeepCopy()
	later.EventTime.Time = later.EventTime.Add(time.Nanosecond)
	complain(t, Event.Validate(later, old)) // times are kept in microseconds
	series := old.DeepCopy()
	series.Series.LastObservedTime = metav1.NowMicro()
	series.Finalizers = []string{"x"}
	complain(t, Event.Validate(series, old), `series.count: Invalid value: "": should be at least 2`, `metadata.finalizers[0]: Invalid value: "x": name is neither…`)
	o := old.DeepCopy()
	at := metav1.NewTime(time.Unix(1000, 0))
	o.Regarding.Name, o.Reason, o.Note, o.DeprecatedSource.Host, o.DeprecatedFirstTimestamp, o.DeprecatedLastTimestamp, o.DeprecatedCount = "x", "x", "x", "x", at, at, 7
	o.Type, o.EventTime, o.Action, o.Related, o.ReportingController, o.ReportingInstance = "Warning", metav1.NewMicroTime(at.Time), "x", &corev1.ObjectReference{}, "x", "x"
	var wrong []string
	for _, name := range []string{"involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "type", "eventTime", "action", "related", "reportingController", "reportingInstance"} {
		wrong = append(wrong, name+": Invalid value: …")
	}
	errs := Event.Validate(o, old)
	complain(t, errs, wrong...)
	for _, err := range errs {
		if !strings.HasSuffix(err.Error(), ": field is immutable") {
			t.Error(err)
		}
	}
	// The core group lets all of it change.
	core, before := toCore(o), toCore(old)
	complain(t, CoreEvent.Validate(core, before))
}

// Both groups show the same object.
func TestEventsOfBothGroups(t *testing.T) {
	at := metav1.NewTime(time.Unix(1000, 0))
	in := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "n"}, EventTime: metav1.NewMicroTime(at.Time), ReportingController: "c", ReportingInstance: "i", Action: "a", Reason: "r",
		InvolvedObject: corev1.ObjectReference{Name: "o"}, Related: &corev1.ObjectReference{Name: "p"}, Message: "m", Type: "t",
		Source: corev1.EventSource{Host: "h"}, FirstTimestamp: at, LastTimestamp: metav1.NewTime(time.Unix(2000, 0)), Count: 3,
		Series: &corev1.EventSeries{Count: 4, LastObservedTime: metav1.NewMicroTime(at.Time)},
	}
	var out eventsv1.Event
	FromCoreEvent(in, &out)
	if out.Note != "m" || out.Regarding.Name != "o" || out.DeprecatedCount != 3 || out.Series.Count != 4 {
		t.Errorf("%+v", out)
	}
	if back := toCore(&out); !reflect.DeepEqual(back, in) {
		t.Errorf("%+v", back)
	}
	in.Series = nil
	FromCoreEvent(in, &out)
	if back := toCore(&out); !reflect.DeepEqual(back, in) {
		t.Errorf("without a series: %+v", back)
	}
}
