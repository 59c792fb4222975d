package engine

import (
	"fmt"
	"slices"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/conformance/oracle"
	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/request"
	"github.com/espalier-dev/espalier/internal/object"
)

// A Resource is a version of a CRD, as the server and the command line have it.
type Resource struct {
	resource *request.Resource
	schema   *request.Schema
}

// NewResource reads a CRD of either version and compiles one of its versions.
func NewResource(doc []byte, version string) (*Resource, error) {
	d, err := crd.Parse(doc)
	if err != nil {
		return nil, err
	}
	defer d.Release()
	if err := d.Decodable(); err != nil {
		return nil, err
	}
	v := d.Version(version)
	if v == nil {
		return nil, fmt.Errorf("there is no version %s", version)
	}
	s, err := request.Compile(v, d.PreserveUnknownFields)
	if err != nil {
		return nil, err
	}
	return &Resource{request.New(d, v), s}, nil
}

// Do makes a request.
func (r *Resource) Do(q oracle.Operation) (a oracle.Answer) {
	defer func() {
		if p := recover(); p != nil {
			a = oracle.Answer{Validation: oracle.Validation{Panic: p}}
		}
	}()
	var report espalier.Report
	o, _, err := r.schema.Decode(q.Body, &report, 0)
	if kind := request.KindOf(q.Body); err != nil && kind.Kind != "" && kind != r.resource.Kind {
		o, err = request.DecodeForeign(q.Body) // as the server's decoder does
	}
	if err != nil {
		return oracle.Answer{Refused: err.Error()}
	}
	if o.GroupVersionKind() != r.resource.Kind {
		return oracle.Answer{Foreign: o.GroupVersionKind().String()}
	}
	for _, e := range request.StrictErrors(q.Body, request.Pruned(&report)) {
		a.Strict = append(a.Strict, e.Error())
	}
	slices.Sort(a.Strict)
	found, finalizers, err := r.process(q, o, &a)
	if err != nil {
		return oracle.Answer{Refused: err.Error()}
	}
	for _, p := range found.Problems {
		a.Errors = append(a.Errors, oracle.Render(p.Error))
	}
	if found.Omitted > 0 {
		a.Errors = append(a.Errors, fmt.Sprintf("(%d errors omitted)", found.Omitted))
	}
	for i := range found.Warnings {
		a.Warnings = append(a.Warnings, found.Warnings[i].Error())
	}
	if len(a.Errors) == 0 {
		for _, w := range finalizers {
			a.Warnings = append(a.Warnings, w.Text)
		}
	}
	slices.Sort(a.Errors)
	slices.Sort(a.Warnings)
	return a
}

// process prepares and validates a decoded object.
func (r *Resource) process(q oracle.Operation, o *object.Object, a *oracle.Answer) (request.Result, []request.FinalizerWarning, error) {
	if q.Verb == oracle.Create {
		o.SetDeletionTimestamp(nil)
		o.SetDeletionGracePeriodSeconds(nil)
		o.SetCreationTimestamp(oracle.Created)
		o.SetUID(oracle.UID)
		r.resource.PrepareCreate(o)
		a.Stored = o.JSON()
		found, err := r.resource.Validate(r.schema, o, request.Options{})
		return found, request.FinalizerWarnings(o.GetFinalizers(), nil), err
	}
	old, err := r.schema.DecodeStored(q.Old)
	if err != nil {
		return request.Result{}, nil, fmt.Errorf("old: %w", err)
	}
	target := request.Object
	if q.Verb == oracle.UpdateStatus {
		target = request.Status
	}
	// What k8s.io/apiserver's registry does around the strategy, with a request that names the object's namespace.
	o.SetManagedFields(nil)
	old.SetManagedFields(nil)
	if !r.resource.Namespaced && o.GetNamespace() != "" {
		o.SetNamespace("")
	}
	o.SetGeneration(old.GetGeneration())
	r.resource.PrepareUpdate(o, old, target)
	request.KeepMetadata(o, old)
	a.Stored = o.JSON()
	for _, e := range r.resource.UpdateErrors(o, old) {
		a.Errors = append(a.Errors, oracle.Render(e))
	}
	found, err := r.resource.Validate(r.schema, o, request.Options{Old: old, Target: target})
	if target == request.Status {
		return found, nil, err
	}
	return found, request.FinalizerWarnings(o.GetFinalizers(), old.GetFinalizers()), err
}
