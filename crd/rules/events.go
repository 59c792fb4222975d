package rules

import (
	"fmt"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/crd/kinds"
	"github.com/espalier-dev/espalier/crd/request"
)

// The events of the core group came first, and their validation was never tightened.
// Events with an eventTime must name the reporting controller and the action. Events
// written through events.k8s.io must not set the deprecated fields.

const (
	maxReportingInstance = 128
	maxEventAction       = 128
	maxEventReason       = 128
	maxEventNote         = 1024
)

// CoreEvent and Event are the rules of the events of the core group and of events.k8s.io,
// which are the same objects.
var (
	CoreEvent = Rules{
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Event"), Namespaced: true,
		Name:         kinds.PathSegmentName, // clients derive it from the name of the object that an event is about
		AnyFinalizer: true, LooseGenerateName: true, MetadataLast: true,
		Validate: compared(func(o, old *corev1.Event) field.ErrorList { return ValidateEvent(corev1.GroupName, o, old) }),
	}
	Event = Rules{
		GroupVersionKind: eventsv1.SchemeGroupVersion.WithKind("Event"), Namespaced: true,
		Name:         kinds.PathSegmentName,
		AnyFinalizer: true, LooseGenerateName: true, MetadataLast: true,
		Validate: compared(func(o, old *eventsv1.Event) field.ErrorList {
			if old == nil {
				return ValidateEvent(eventsv1.GroupName, toCore(o), nil)
			}
			return ValidateEvent(eventsv1.GroupName, toCore(o), toCore(old))
		}),
	}
)

// ValidateEvent validates an event that is written through a group. Old is nil for new
// events.
func ValidateEvent(group string, o, old *corev1.Event) field.ErrorList {
	if old == nil {
		return validateEvent(group, o)
	}
	return validateEventUpdate(group, o, old)
}

func toCore(in *eventsv1.Event) *corev1.Event {
	out := &corev1.Event{}
	ToCoreEvent(in, out)
	return out
}

func validateEvent(group string, o *corev1.Event) field.ErrorList {
	errs := validateAnyEvent(group, o)
	if group != eventsv1.GroupName {
		return errs
	}
	errs = append(errs, request.QualifiedFinalizers(o)...)
	errs = append(errs, apivalidation.ValidateObjectMeta(&o.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))...)
	errs = append(errs, validateEventSeries(o)...)
	if o.EventTime.IsZero() {
		errs = append(errs, field.Required(field.NewPath("eventTime"), ""))
	}
	if o.Type != corev1.EventTypeNormal && o.Type != corev1.EventTypeWarning {
		errs = append(errs, field.Invalid(field.NewPath("type"), "", fmt.Sprintf("has invalid value: %v", o.Type)))
	}
	for _, old := range []struct {
		name string
		set  bool
	}{
		{"firstTimestamp", !o.FirstTimestamp.IsZero()},
		{"lastTimestamp", !o.LastTimestamp.IsZero()},
		{"count", o.Count != 0},
		{"source", o.Source != corev1.EventSource{}},
	} {
		if old.set {
			errs = append(errs, field.Invalid(field.NewPath(old.name), "", "needs to be unset"))
		}
	}
	return errs
}

func validateEventUpdate(group string, o, old *corev1.Event) field.ErrorList {
	errs := validateAnyEvent(group, o)
	if group != eventsv1.GroupName {
		return errs
	}
	errs = append(errs, request.QualifiedFinalizers(o)...)
	if !reflect.DeepEqual(o.Series, old.Series) {
		errs = append(errs, validateEventSeries(o)...)
	}
	for _, kept := range []struct {
		name    string
		is, was any
	}{
		{"involvedObject", o.InvolvedObject, old.InvolvedObject},
		{"reason", o.Reason, old.Reason},
		{"message", o.Message, old.Message},
		{"source", o.Source, old.Source},
		{"firstTimestamp", o.FirstTimestamp, old.FirstTimestamp},
		{"lastTimestamp", o.LastTimestamp, old.LastTimestamp},
		{"count", o.Count, old.Count},
		{"type", o.Type, old.Type},
		{"eventTime", metav1.NewMicroTime(o.EventTime.Truncate(time.Microsecond)), metav1.NewMicroTime(old.EventTime.Truncate(time.Microsecond))},
		{"action", o.Action, old.Action},
		{"related", o.Related, old.Related},
		{"reportingController", o.ReportingController, old.ReportingController},
		{"reportingInstance", o.ReportingInstance, old.ReportingInstance},
	} {
		errs = append(errs, apivalidation.ValidateImmutableField(kept.is, kept.was, field.NewPath(kept.name))...)
	}
	return errs
}

func validateEventSeries(o *corev1.Event) field.ErrorList {
	if o.Series == nil {
		return nil
	}
	var errs field.ErrorList
	if o.Series.Count < 2 {
		errs = append(errs, field.Invalid(field.NewPath("series.count"), "", "should be at least 2"))
	}
	if o.Series.LastObservedTime.IsZero() {
		errs = append(errs, field.Required(field.NewPath("series.lastObservedTime"), ""))
	}
	return errs
}

// validateAnyEvent is for events of both groups.
func validateAnyEvent(group string, o *corev1.Event) field.ErrorList {
	var errs field.ErrorList
	about := o.InvolvedObject.Namespace
	if !eventNamespaceFits(o, about) {
		errs = append(errs, field.Invalid(field.NewPath("involvedObject", "namespace"), about, "does not match event.namespace"))
	}
	if !o.EventTime.IsZero() {
		errs = append(errs, validateReport(group, o)...)
	}
	for _, text := range validation.IsDNS1123Subdomain(o.Namespace) {
		errs = append(errs, field.Invalid(field.NewPath("namespace"), o.Namespace, text))
	}
	return errs
}

// eventNamespaceFits reports whether an event is in the namespace of its object. Events
// about cluster-scoped objects are in the namespace default.
func eventNamespaceFits(o *corev1.Event, about string) bool {
	switch {
	case about == "" && o.EventTime.IsZero():
		return o.Namespace == metav1.NamespaceNone || o.Namespace == metav1.NamespaceDefault
	case about == "":
		return o.Namespace == metav1.NamespaceDefault || o.Namespace == metav1.NamespaceSystem
	case o.EventTime.IsZero():
		return o.Namespace == about
	}
	return true
}

// validateReport validates the reporting controller, the instance and the action.
func validateReport(group string, o *corev1.Event) field.ErrorList {
	controller := field.NewPath("reportingComponent")
	if group == eventsv1.GroupName {
		controller = field.NewPath("reportingController")
	}
	var errs field.ErrorList
	if o.ReportingController == "" {
		errs = append(errs, field.Required(controller, ""))
	}
	for _, text := range validation.IsQualifiedName(o.ReportingController) {
		errs = append(errs, field.Invalid(controller, o.ReportingController, text))
	}
	for _, one := range []struct {
		name, value string
		required    bool
		limit       int
	}{
		{"reportingInstance", o.ReportingInstance, true, maxReportingInstance},
		{"action", o.Action, true, maxEventAction},
		{"reason", o.Reason, true, maxEventReason},
		{"message", o.Message, false, maxEventNote},
	} {
		if one.required && one.value == "" {
			errs = append(errs, field.Required(field.NewPath(one.name), ""))
		}
		if len(one.value) > one.limit {
			errs = append(errs, field.Invalid(field.NewPath(one.name), "", fmt.Sprintf("can have at most %v characters", one.limit)))
		}
	}
	return errs
}

// FromCoreEvent converts an event of the core group.
func FromCoreEvent(in *corev1.Event, out *eventsv1.Event) {
	*out = eventsv1.Event{
		ObjectMeta: in.ObjectMeta, EventTime: in.EventTime,
		ReportingController: in.ReportingController, ReportingInstance: in.ReportingInstance,
		Action: in.Action, Reason: in.Reason, Regarding: in.InvolvedObject, Related: in.Related, Note: in.Message, Type: in.Type,
		DeprecatedSource: in.Source, DeprecatedFirstTimestamp: in.FirstTimestamp, DeprecatedLastTimestamp: in.LastTimestamp, DeprecatedCount: in.Count,
	}
	if in.Series != nil {
		out.Series = &eventsv1.EventSeries{Count: in.Series.Count, LastObservedTime: in.Series.LastObservedTime}
	}
}

// ToCoreEvent converts an event of events.k8s.io.
func ToCoreEvent(in *eventsv1.Event, out *corev1.Event) {
	*out = corev1.Event{
		ObjectMeta: in.ObjectMeta, EventTime: in.EventTime,
		ReportingController: in.ReportingController, ReportingInstance: in.ReportingInstance,
		Action: in.Action, Reason: in.Reason, InvolvedObject: in.Regarding, Related: in.Related, Message: in.Note, Type: in.Type,
		Source: in.DeprecatedSource, FirstTimestamp: in.DeprecatedFirstTimestamp, LastTimestamp: in.DeprecatedLastTimestamp, Count: in.DeprecatedCount,
	}
	if in.Series != nil {
		out.Series = &corev1.EventSeries{Count: in.Series.Count, LastObservedTime: in.Series.LastObservedTime}
	}
}
