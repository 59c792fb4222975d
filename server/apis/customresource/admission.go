package customresource

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/crd/request"
	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/storage/fieldmanager"
)

const (
	// prunedAnnotation of an audit event lists fields that were not stored.
	prunedAnnotation = "espalier.dev/pruned-fields"
	// maxPrunedPaths bounds the list.
	maxPrunedPaths = 20
)

var prunedFields = metrics.NewCounterVec(&metrics.CounterOpts{
	Name:           "espalier_pruned_fields_total",
	Help:           "Number of fields of requests that were not stored because the schema does not specify them.",
	StabilityLevel: metrics.ALPHA,
}, []string{"group", "version", "resource"})

func init() { legacyregistry.MustRegister(prunedFields) }

// gate runs before and after the admission plugins. Plugins do not see values of the
// wrong type, and fields that they add are pruned like fields of clients.
type gate struct {
	plugins     admission.Interface // may be nil
	strategy    *strategy
	target      request.Target
	resource    schema.GroupVersionResource
	terminating bool // nothing may be created
}

var (
	_ admission.MutationInterface   = (*gate)(nil)
	_ admission.ValidationInterface = (*gate)(nil)
)

// Handles implements admission.Interface.
func (g *gate) Handles(operation admission.Operation) bool {
	return operation == admission.Create || operation == admission.Update || g.plugins != nil && g.plugins.Handles(operation)
}

// Admit implements admission.MutationInterface.
func (g *gate) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if err := g.forbids(a); err != nil {
		return err
	}
	obj, ours := a.GetObject().(*object.Object)
	if ours {
		if a.GetOperation() == admission.Create {
			fieldmanager.DropUnreadable(obj)
		}
		if err := g.before(ctx, a, obj); err != nil {
			return err
		}
	}
	if plugins, ok := g.plugins.(admission.MutationInterface); ok && plugins.Handles(a.GetOperation()) {
		if err := plugins.Admit(ctx, a, o); err != nil {
			return err
		}
	}
	if ours {
		return g.after(ctx, obj)
	}
	return nil
}

// Validate implements admission.ValidationInterface.
func (g *gate) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if err := g.forbids(a); err != nil {
		return err
	}
	if plugins, ok := g.plugins.(admission.ValidationInterface); ok && plugins.Handles(a.GetOperation()) {
		return plugins.Validate(ctx, a, o)
	}
	return nil
}

// forbids rejects the creation of objects whose CRD is being deleted.
func (g *gate) forbids(a admission.Attributes) error {
	if !g.terminating || a.GetOperation() != admission.Create {
		return nil
	}
	return apierrors.NewForbidden(a.GetResource().GroupResource(), a.GetName(),
		errors.New("create not allowed while custom resource definition is terminating"))
}

// before reports the fields that the decoder has pruned. It rejects values of the wrong
// type, unless the old object has them too or the request ignores them.
func (g *gate) before(ctx context.Context, a admission.Attributes, o *object.Object) error {
	note, ok := o.Stamp().(*decodeResult)
	if !ok {
		return nil
	}
	g.tell(ctx, note.pruned)
	if note.mismatched {
		old, _ := a.GetOldObject().(*object.Object)
		if err := g.refuse(o, old); err != nil {
			return err
		}
	}
	o.SetStamp(note.schema)
	return nil
}

func (g *gate) refuse(o, old *object.Object) error {
	compiled, err := g.strategy.decoder.current(g.strategy.decoder.kind.Version).compiled()
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	o = o.DeepCopy()
	switch {
	case old != nil:
		g.strategy.resource.PrepareUpdate(o, old, g.target)
	case g.target == request.Object:
		g.strategy.resource.PrepareCreate(o)
	}
	errs, err := g.strategy.resource.Mistyped(compiled.Schema, o, request.Options{Old: old, Target: g.target})
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(g.strategy.decoder.kind.GroupKind(), o.GetName(), errs)
}

// after normalizes an object that plugins have changed.
func (g *gate) after(ctx context.Context, o *object.Object) error {
	decoder := g.strategy.decoder
	s := decoder.currentFor(o)
	if s == nil || schemaMarkerOf(o) == s {
		return nil
	}
	s, err := s.compiled()
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	var report espalier.Report
	result, err := s.Normalize.Normalize(o.JSON(), espalier.NormalizeOptions{Source: espalier.Request, Report: &report})
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	pruned := report.Pruned()
	g.tell(ctx, pruned)
	for _, path := range pruned {
		warning.AddWarning(ctx, "", fmt.Sprintf(`unknown field "%s"`, path))
	}
	if !bytes.Equal(result.Bytes, o.JSON()) {
		decoded, err := object.FromJSON(result.Bytes)
		if err != nil {
			return apierrors.NewInternalError(err)
		}
		*o = *decoded
	}
	o.SetStamp(s)
	return nil
}

// tell counts pruned fields and writes them into the audit log, whatever
// fieldValidation the client has chosen.
func (g *gate) tell(ctx context.Context, pruned []string) {
	if len(pruned) == 0 {
		return
	}
	prunedFields.WithLabelValues(g.resource.Group, g.resource.Version, g.resource.Resource).Add(float64(len(pruned)))
	text := strings.Join(pruned[:min(len(pruned), maxPrunedPaths)], ",")
	if more := len(pruned) - maxPrunedPaths; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	audit.AddAuditAnnotation(ctx, prunedAnnotation, text)
}
