package builtin

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"

	"github.com/espalier-dev/espalier/server/endpoints/apitest"
)

// subject is what events are about.
func subject() *corev1.ConfigMap {
	return &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "n", UID: "u"}}
}

func TestCoreRecorder(t *testing.T) {
	e := start(t)
	for media, c := range e.clients() {
		t.Run(media, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			broadcaster := record.NewBroadcaster(record.WithContext(ctx))
			defer broadcaster.Shutdown()
			broadcaster.StartRecordingToSink(&coreclient.EventSinkImpl{Interface: c.CoreV1().Events("")})
			recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "tester-" + media})
			recorder.Event(subject(), corev1.EventTypeWarning, "Reason", "told")
			recorder.Event(subject(), corev1.EventTypeWarning, "Reason", "told") // becomes a patch
			selector := metav1.ListOptions{FieldSelector: "involvedObject.name=c,involvedObject.kind=ConfigMap,reason=Reason,type=Warning,source=tester-" + media}
			apitest.Eventually(t, func() bool {
				list, err := c.CoreV1().Events("n").List(ctx, selector)
				return err == nil && len(list.Items) == 1 && list.Items[0].Count == 2
			})
			list, err := c.EventsV1().Events("n").List(ctx, metav1.ListOptions{FieldSelector: "regarding.name=c,reportingController=tester-" + media})
			if err != nil || len(list.Items) != 1 {
				t.Fatalf("%v, %v", list, err)
			}
			if o := list.Items[0]; o.Note != "told" || o.DeprecatedCount != 2 || o.Regarding.UID != "u" || o.DeprecatedSource.Component != "tester-"+media || o.DeprecatedFirstTimestamp.IsZero() {
				t.Errorf("through the other group: %+v", o)
			}
			if found, err := c.CoreV1().Events("n").SearchWithContext(ctx, scheme.Scheme, subject()); err != nil || len(found.Items) == 0 {
				t.Errorf("search: %v, %v", found, err)
			}
		})
	}
}

func TestEventsRecorder(t *testing.T) {
	e := start(t)
	for media, c := range e.clients() {
		t.Run(media, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: c.EventsV1()})
			defer broadcaster.Shutdown()
			if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
				t.Fatal(err)
			}
			recorder := broadcaster.NewRecorder(scheme.Scheme, "example.com/"+media)
			for range 2 { // the second time it becomes a series, by a patch
				recorder.Eventf(subject(), nil, corev1.EventTypeNormal, "Reason", "Action", "told %d times", 1)
			}
			var found eventsv1.Event
			apitest.Eventually(t, func() bool {
				list, err := c.EventsV1().Events("n").List(ctx, metav1.ListOptions{FieldSelector: "reportingController=example.com/" + media})
				if err != nil || len(list.Items) == 0 {
					return false
				}
				found = list.Items[0]
				return found.Series != nil && found.Series.Count == 2
			})
			core, err := c.CoreV1().Events("n").Get(ctx, found.Name, metav1.GetOptions{})
			if err != nil || core.Message != "told 1 times" || core.Action != "Action" || core.InvolvedObject.Name != "c" || core.Series.Count != 2 {
				t.Errorf("through the core group: %+v, %v", core, err)
			}
			data := e.stored("/events/n/" + found.Name)
			if !strings.HasPrefix(string(data), string(magic)+"\n\v\n\x02v1\x12\x05Event") {
				t.Errorf("it is not stored as an event of the core group: %q", data)
			}
		})
	}
}

func TestEventsOfTwoGroups(t *testing.T) {
	e := start(t)
	core, other := "/api/v1/namespaces/n/events", "/apis/events.k8s.io/v1/namespaces/n/events"
	const body = `{"metadata":{"name":"e"},"eventTime":"2020-01-01T00:00:00.000001Z","reportingController":"c","reportingInstance":"i","action":"a","reason":"r","type":"Normal","note":"x","regarding":{"kind":"K","name":"o","namespace":"n"}}`
	e.Do("POST", other, body).Is(201).Has("apiVersion", "events.k8s.io/v1").Has("kind", "Event").Has("note", "x")
	e.Do("GET", core+"/e", "").Is(200).Has("apiVersion", "v1").Has("message", "x").Has("involvedObject.name", "o").Has("reportingComponent", "c")
	e.Do("GET", other, "").Is(200).Has("kind", "EventList").Has("apiVersion", "events.k8s.io/v1").Has("items.0.note", "x").Has("items.0.kind", nil)
	e.Patch("merge", other+"/e", `{"note":"y"}`).Is(422).Mentions(`message: Invalid value: "y": field is immutable`)
	e.Patch("merge", other+"/e", `{"series":{"count":1}}`).Is(422).Mentions("series.count: Invalid value: \"\": should be at least 2").Mentions("series.lastObservedTime: Required value")
	e.Patch("strategic", core+"/e", `{"message":"z"}`).Is(200).Has("message", "z")
	e.Patch("json", other+"/e", `[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`).Is(200).Has("note", "z").Has("metadata.labels.a", "b")
	e.Patch("apply", other+"/e?fieldManager=m&force=true", `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"e","labels":{"c":"d"}},"eventTime":"2020-01-01T00:00:00.000001Z"}`).Is(200).
		Has("metadata.labels", map[string]any{"a": "b", "c": "d"}).Has("note", "z")
	e.Patch("apply", core+"/e?fieldManager=n", `{"apiVersion":"v1","kind":"Event","metadata":{"name":"e","labels":{"e":"f"}}}`).Is(200).Has("metadata.labels.c", "d")
	e.Do("GET", other+"?fieldSelector=involvedObject.name%3Do", "").Is(400).Mentions("field label not supported: involvedObject.name")
	e.Do("PUT", core+"/created", `{"metadata":{"name":"created"},"involvedObject":{"namespace":"n"}}`).Is(201)
	e.Do("DELETE", other+"/e", "").Is(200)
	e.Do("GET", core+"/e", "").Is(404)
}

func TestEventRules(t *testing.T) {
	e := start(t)
	core, other := "/api/v1/namespaces/n/events", "/apis/events.k8s.io/v1/namespaces/n/events"
	e.Do("POST", core, `{"metadata":{"name":"e"},"involvedObject":{"namespace":"m"}}`).Is(422).Mentions(`Event "e" is invalid: involvedObject.namespace: Invalid value: "m": does not match event.namespace`)
	e.Do("POST", core, `{"metadata":{"name":"Free_Name"},"involvedObject":{"namespace":"n"}}`).Is(201)
	e.Do("POST", core, `{"metadata":{"name":"e"},"involvedObject":{"namespace":"n"},"eventTime":"2020-01-01T00:00:00.000000Z"}`).Is(422).
		Mentions("reportingComponent: Required value").Mentions("reportingInstance: Required value").Mentions("action: Required value").Mentions("reason: Required value")
	e.Do("POST", other, `{"metadata":{"name":"E"},"regarding":{"namespace":"n"},"deprecatedCount":1,"deprecatedSource":{"host":"h"}}`).Is(422).
		Mentions("eventTime: Required value").Mentions(`metadata.name: Invalid value: "E"`).Mentions("type: Invalid value: \"\": has invalid value: ").
		Mentions("count: Invalid value: \"\": needs to be unset").Mentions("source: Invalid value: \"\": needs to be unset")
	long := strings.Repeat("x", 1025)
	e.Do("POST", other, `{"metadata":{"name":"e"},"eventTime":"2020-01-01T00:00:00.000000Z","regarding":{"namespace":"n"},"type":"Normal","reportingController":"a b","reportingInstance":"`+long+`","action":"`+long+`","reason":"`+long+`","note":"`+long+`"}`).Is(422).
		Mentions(`reportingController: Invalid value: "a b"`).Mentions("action: Invalid value: \"\": can have at most 128 characters").Mentions("message: Invalid value: \"\": can have at most 1024 characters")
}

func TestEventsGoByThemselves(t *testing.T) {
	e := start(t, Events(time.Second)...)
	e.Do("POST", "/api/v1/namespaces/n/events", `{"metadata":{"name":"e"},"involvedObject":{"namespace":"n"}}`).Is(201)
	apitest.Eventually(t, func() bool { return e.stored("/events/n/e") == nil })
	e.Do("GET", "/api/v1/namespaces/n/events/e", "").Is(404)
}
