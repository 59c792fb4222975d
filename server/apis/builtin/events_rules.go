package builtin

import (
	"context"
	"fmt"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"

	crdrequest "github.com/espalier-dev/espalier/crd/request"
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

// inEvents reports whether a request is to events.k8s.io.
func inEvents(ctx context.Context) bool {
	info, ok := request.RequestInfoFrom(ctx)
	return ok && info.APIGroup == eventsv1.GroupName
}

func validateEvent(ctx context.Context, o *corev1.Event) field.ErrorList {
	errs := validateAnyEvent(ctx, o)
	if !inEvents(ctx) {
		return errs
	}
	errs = append(errs, crdrequest.QualifiedFinalizers(o)...)
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

func validateEventUpdate(ctx context.Context, o, old *corev1.Event) field.ErrorList {
	errs := validateAnyEvent(ctx, o)
	if !inEvents(ctx) {
		return errs
	}
	errs = append(errs, crdrequest.QualifiedFinalizers(o)...)
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
func validateAnyEvent(ctx context.Context, o *corev1.Event) field.ErrorList {
	var errs field.ErrorList
	about := o.InvolvedObject.Namespace
	if !eventNamespaceFits(o, about) {
		errs = append(errs, field.Invalid(field.NewPath("involvedObject", "namespace"), about, "does not match event.namespace"))
	}
	if !o.EventTime.IsZero() {
		errs = append(errs, validateReport(ctx, o)...)
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
func validateReport(ctx context.Context, o *corev1.Event) field.ErrorList {
	controller := field.NewPath("reportingComponent")
	if inEvents(ctx) {
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
