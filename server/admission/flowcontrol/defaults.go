package flowcontrol

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	flowcontrol "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"
	"k8s.io/client-go/kubernetes"
)

// attempts is how often an object is read again after a conflict with another replica.
const attempts = 10

// EnsureDefaults creates the flow schemas and priority levels that are missing,
// and updates those that differ, unless clients manage them. If one fails, the others
// are still written.
func EnsureDefaults(ctx context.Context, client kubernetes.Interface) error {
	var errs []error
	levels := client.FlowcontrolV1().PriorityLevelConfigurations()
	// Priority levels come first: flow schemas refer to them.
	for _, want := range slices.Concat(bootstrap.MandatoryPriorityLevelConfigurations, bootstrap.SuggestedPriorityLevelConfigurations) {
		errs = append(errs, ensure(ctx, levels, want, func(l *flowcontrol.PriorityLevelConfiguration) *flowcontrol.PriorityLevelConfigurationSpec {
			return &l.Spec
		}))
	}
	schemas := client.FlowcontrolV1().FlowSchemas()
	for _, want := range slices.Concat(bootstrap.MandatoryFlowSchemas, bootstrap.SuggestedFlowSchemas) {
		errs = append(errs, ensure(ctx, schemas, want, func(s *flowcontrol.FlowSchema) *flowcontrol.FlowSchemaSpec { return &s.Spec }))
	}
	return errors.Join(errs...)
}

// configuration is an object that priority and fairness are configured with.
type configuration[T any] interface {
	*T
	metav1.Object
	DeepCopy() *T
}

// client is the part of a typed client that is needed here.
type client[P any] interface {
	Get(ctx context.Context, name string, o metav1.GetOptions) (P, error)
	Create(ctx context.Context, obj P, o metav1.CreateOptions) (P, error)
	Update(ctx context.Context, obj P, o metav1.UpdateOptions) (P, error)
}

// ensure writes one object, if need be: with the spec that it should have.
func ensure[T any, P configuration[T], Spec any](ctx context.Context, c client[P], want P, spec func(P) *Spec) error {
	var err error
	for range attempts {
		var now P
		switch now, err = c.Get(ctx, want.GetName(), metav1.GetOptions{}); {
		case apierrors.IsNotFound(err):
			_, err = c.Create(ctx, want.DeepCopy(), metav1.CreateOptions{})
		case err == nil && ours(now) && !equality.Semantic.DeepEqual(spec(now), spec(want)):
			*spec(now) = *spec(want.DeepCopy())
			_, err = c.Update(ctx, now, metav1.UpdateOptions{})
		}
		// Another server may have created, changed or deleted it by now.
		if !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("failed to write the %T %q: %w", want, want.GetName(), err)
	}
	return nil
}

// ours reports whether the server keeps an object up to date. Without the annotation
// it does so until a client changes the object.
func ours(now metav1.Object) bool {
	wants, err := strconv.ParseBool(now.GetAnnotations()[flowcontrol.AutoUpdateAnnotationKey])
	if err != nil {
		return now.GetGeneration() == 1
	}
	return wants
}
