package cli

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/cmd/internal/report"
	"github.com/espalier-dev/espalier/crd/request"
	"github.com/espalier-dev/espalier/internal/object"
)

// defaultNamespace is where kubectl puts objects that name none.
const defaultNamespace = "default"

// write is an object on its way into a server.
type write struct {
	version *compiled
	object  *object.Object // as a server decodes it
	old     *object.Object // as it is stored; nil for a new object
	target  request.Target
	changes []espalier.Change // that decoding has made
	altered bool              // by more than defaults
}

// decode reads an object as a server does. It reports false for one that a server cannot read.
func (c *compiled) decode(text []byte, out *result) (*write, bool) {
	var changes espalier.Report
	o, happened, err := c.schema.Decode(text, &changes, 0)
	if err != nil {
		out.unreadable(err)
		return nil, false
	}
	return &write{version: c, object: o, changes: changes.Changes, altered: happened&^espalier.Defaulted != 0}, true
}

// decoded reports what decoding has changed.
func (w *write) decoded(fields string, out *result) {
	for _, c := range w.changes {
		out.change(c, fields)
	}
	if w.altered && fields != fieldsIgnore {
		out.duplicates(request.StrictErrors(out.document.JSON, nil), fields)
	}
}

// validate reports what a server answers to the request.
func (w *write) validate(out *result) {
	if w.old != nil && !request.SameUID(w.object, w.old) {
		out.otherUID(w.object.GetUID(), w.old.GetUID())
		return // storage compares them before anything is validated
	}
	w.advice(out)
	for _, text := range w.prepare() {
		pointer := "/metadata/ownerReferences"
		out.add(report.Diagnostic{Check: idOwnerTwice, Path: "metadata.ownerReferences", Pointer: pointer, Place: out.of(pointer), Message: text})
	}
	found, err := w.version.kind.Validate(w.version.schema, w.object, request.Options{Old: w.old, Target: w.target, ReadOnly: true})
	if err != nil {
		out.unreadable(err)
		return
	}
	if w.target == request.Object {
		w.finalizers(out)
	}
	out.problems(w.version, w.object.JSON(), &found)
	if w.old != nil {
		out.registry(w.version.kind.UpdateErrors(w.object, w.old), found.Problems)
	}
}

// prepare does what a server does before it validates, and returns the server's warnings.
func (w *write) prepare() []string {
	namespace := w.object.GetNamespace()
	if namespace == "" {
		namespace = defaultNamespace
	}
	if w.old == nil {
		return w.version.kind.Create(w.object, namespace)
	}
	return w.version.kind.Update(w.object, w.old, w.target, namespace)
}

// registry reports errors that the registry of a server finds in metadata, except those that are reported already.
func (v *result) registry(errs field.ErrorList, reported []request.Problem) {
	known := make(map[string]bool, len(reported))
	for i := range reported {
		known[reported[i].Error.Error()] = true
	}
	for _, e := range errs {
		text := e.Error()
		if known[text] {
			continue
		}
		known[text] = true
		at := 0
		if v.lookups < maxLookups {
			v.lookups++
			at = v.lookup(e.Field)
		}
		v.add(report.Diagnostic{Check: idMetadata, Message: text, Path: e.Field, Place: v.at(v.document.At(at))})
	}
}

// otherUID reports an update of another object than the old one.
func (v *result) otherUID(uid, old types.UID) {
	pointer := "/metadata/uid"
	v.add(report.Diagnostic{Check: idMetadata, Path: "metadata.uid", Pointer: pointer, Place: v.of(pointer),
		Message: fmt.Sprintf("Precondition failed: UID in precondition: %s, UID in object meta: %s", uid, old),
		Fix:     "Remove metadata.uid, or give the old object with this uid with --old."})
}

// ignored reports metadata that a server does not store. It does refuse a new object with a
// resourceVersion, but its storage does so.
func (v *result) ignored(kind string, meta metav1.Object, cluster, isNew bool) {
	if cluster && meta.GetNamespace() != "" {
		v.add(report.Diagnostic{Check: idNamespaceIgnored, Path: "metadata.namespace", Pointer: "/metadata/namespace",
			Message: "metadata.namespace: " + kind + " is cluster-scoped; the API server removes the namespace", Place: v.of("/metadata/namespace")})
	}
	if isNew && request.StoredResourceVersion(meta) {
		v.add(report.Diagnostic{Check: idResourceVersion, Path: "metadata.resourceVersion", Pointer: "/metadata/resourceVersion",
			Message: "resourceVersion should not be set on objects to be created", Place: v.of("/metadata/resourceVersion")})
	}
}

// advice reports what a server does not say: parts of the object that it ignores.
func (w *write) advice(out *result) {
	out.ignored(w.version.crd.Kind, w.object, !w.version.kind.Namespaced, w.old == nil)
	status := w.object.Member("status")
	switch {
	case status == nil || !w.version.kind.Status || w.target == request.Status:
	case w.old == nil:
		out.statusIgnored("the API server drops status of a new object")
	case !bytes.Equal(status, w.old.Member("status")):
		out.statusIgnored("an update of the object does not change status")
	}
}

func (v *result) statusIgnored(message string) {
	v.add(report.Diagnostic{Check: idStatusIgnored, Path: "status", Pointer: "/status", Place: v.key("/status"), Message: "status: " + message})
}

// finalizers warns of the names of new finalizers.
func (w *write) finalizers(out *result) {
	var before []string
	if w.old != nil {
		before = w.old.GetFinalizers()
	}
	all := w.object.GetFinalizers()
	warnings := request.FinalizerWarnings(all, before)
	if len(warnings) == 0 {
		return
	}
	places := make(map[string]int, len(all))
	for i, name := range all {
		if _, ok := places[name]; !ok {
			places[name] = i
		}
	}
	for _, warning := range warnings {
		pointer := "/metadata/finalizers/" + strconv.Itoa(places[warning.Finalizer])
		out.add(report.Diagnostic{Check: idFinalizer, Path: "metadata.finalizers", Pointer: pointer, Place: out.of(pointer), Message: warning.Text})
	}
}

// scale is the diagnostic for a problem of the scale subresource.
func (v *result) scale(problem *request.Problem) report.Diagnostic {
	pointer := "/" + strings.Join(request.Steps(problem.Field), "/")
	return report.Diagnostic{Check: idScale, Pointer: pointer, Place: v.of(pointer)}
}

// duplicates reports fields that are there more than once.
func (v *result) duplicates(all []error, fields string) {
	for _, e := range all {
		quoted := strings.TrimPrefix(e.Error(), "duplicate field ")
		path, err := strconv.Unquote(quoted)
		if err != nil {
			path = strings.Trim(quoted, `"`)
		}
		v.field(report.Diagnostic{Check: idFieldDuplicate, Message: e.Error(), Path: path, Place: v.at(v.document.At(v.lookup(path)))}, fields)
	}
}
