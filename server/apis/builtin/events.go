package builtin

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/espalier-dev/espalier/crd/rules"
)

// DefaultEventTTL is how long Kubernetes keeps events.
const DefaultEventTTL = time.Hour

// Events are the events of the core group and of events.k8s.io, which are the same
// objects. They expire after ttl, or after DefaultEventTTL if it is zero.
func Events(ttl time.Duration) []Resource {
	if ttl <= 0 {
		ttl = DefaultEventTTL
	}
	seconds := max(1, uint64(ttl/time.Second))
	core := Resource{
		Version: "v1", Plural: "events", Singular: "event", Kind: "Event", Namespaced: true, ShortNames: []string{"ev"},
		New:     empty[corev1.Event],
		NewList: empty[corev1.EventList],
		Strategy: Ruled(&rules.CoreEvent, Strategy{
			Validate: func(ctx context.Context, obj runtime.Object) field.ErrorList {
				return rules.ValidateEvent(groupOf(ctx), obj.(*corev1.Event), nil)
			},
			ValidateUpdate: func(ctx context.Context, obj, old runtime.Object) field.ErrorList {
				return rules.ValidateEvent(groupOf(ctx), obj.(*corev1.Event), old.(*corev1.Event))
			},
			CreateOnUpdate: true,
			Unconditional:  true,
		}),
		Columns: eventColumns(),
		Row:     eventRow,
		Fields:  eventFields,
		TTL:     func(runtime.Object) uint64 { return seconds },
	}
	return []Resource{core, {
		Group: "events.k8s.io", Version: "v1", Plural: "events", Singular: "event", Kind: "Event", Namespaced: true, ShortNames: []string{"ev"},
		New:       empty[eventsv1.Event],
		NewList:   empty[eventsv1.EventList],
		Alias:     core.resource(),
		convert:   convertEvents,
		selectors: eventSelectors,
	}}
}

// groupOf is the group that a request is to.
func groupOf(ctx context.Context) string {
	if info, ok := request.RequestInfoFrom(ctx); ok {
		return info.APIGroup
	}
	return ""
}

func eventColumns() []metav1.TableColumnDefinition {
	docs := corev1.Event{}.SwaggerDoc()
	return []metav1.TableColumnDefinition{
		{Name: "Last Seen", Type: "string", Description: docs["lastTimestamp"]},
		{Name: "Type", Type: "string", Description: docs["type"]},
		{Name: "Reason", Type: "string", Description: docs["reason"]},
		{Name: "Object", Type: "string", Description: docs["involvedObject"]},
		{Name: "Subobject", Type: "string", Priority: 1, Description: corev1.ObjectReference{}.SwaggerDoc()["fieldPath"]},
		{Name: "Source", Type: "string", Priority: 1, Description: docs["source"]},
		{Name: "Message", Type: "string", Description: docs["message"]},
		{Name: "First Seen", Type: "string", Priority: 1, Description: docs["firstTimestamp"]},
		{Name: "Count", Type: "string", Priority: 1, Description: docs["count"]},
		{Name: "Name", Type: "string", Priority: 1, Format: "name", Description: metadataDocs["name"]},
	}
}

func eventRow(obj runtime.Object) []any {
	o := obj.(*corev1.Event)
	first, last, count := o.FirstTimestamp.Time, o.LastTimestamp.Time, max(1, o.Count)
	if first.IsZero() {
		first = o.EventTime.Time
	}
	if last.IsZero() {
		last = first
	}
	if o.Series != nil {
		last, count = o.Series.LastObservedTime.Time, o.Series.Count
	}
	about := strings.ToLower(o.InvolvedObject.Kind)
	if o.InvolvedObject.Name != "" {
		about += "/" + o.InvolvedObject.Name
	}
	return []any{
		age(last), o.Type, o.Reason, about, o.InvolvedObject.FieldPath, eventSource(o),
		strings.TrimSpace(o.Message), age(first), int64(count), o.Name,
	}
}

// eventSource is the component and the instance that an event comes from.
func eventSource(o *corev1.Event) string {
	component, instance := cmp.Or(o.Source.Component, o.ReportingController), cmp.Or(o.Source.Host, o.ReportingInstance)
	if instance == "" {
		return component
	}
	return fmt.Sprintf("%s, %s", component, instance)
}

func eventFields(obj runtime.Object) fields.Set {
	o := obj.(*corev1.Event)
	return fields.Set{
		"involvedObject.kind":            o.InvolvedObject.Kind,
		"involvedObject.namespace":       o.InvolvedObject.Namespace,
		"involvedObject.name":            o.InvolvedObject.Name,
		"involvedObject.uid":             string(o.InvolvedObject.UID),
		"involvedObject.apiVersion":      o.InvolvedObject.APIVersion,
		"involvedObject.resourceVersion": o.InvolvedObject.ResourceVersion,
		"involvedObject.fieldPath":       o.InvolvedObject.FieldPath,
		"reason":                         o.Reason,
		"reportingComponent":             o.ReportingController,
		"source":                         cmp.Or(o.Source.Component, o.ReportingController),
		"type":                           o.Type,
	}
}

// eventSelectors are the fields of events.k8s.io, and what they are called in
// the core group.
var eventSelectors = map[string]string{
	"reason":                    "reason",
	"reportingController":       "reportingComponent",
	"type":                      "type",
	"regarding.kind":            "involvedObject.kind",
	"regarding.namespace":       "involvedObject.namespace",
	"regarding.name":            "involvedObject.name",
	"regarding.uid":             "involvedObject.uid",
	"regarding.apiVersion":      "involvedObject.apiVersion",
	"regarding.resourceVersion": "involvedObject.resourceVersion",
	"regarding.fieldPath":       "involvedObject.fieldPath",
}

// convertEvents adds the conversions between the two groups.
func convertEvents(s *runtime.Scheme) error {
	return addConversions(s, rules.FromCoreEvent, rules.ToCoreEvent,
		func(in *corev1.EventList, out *eventsv1.EventList) {
			out.ListMeta, out.Items = in.ListMeta, convertAll(in.Items, rules.FromCoreEvent)
		},
		func(in *eventsv1.EventList, out *corev1.EventList) {
			out.ListMeta, out.Items = in.ListMeta, convertAll(in.Items, rules.ToCoreEvent)
		})
}
