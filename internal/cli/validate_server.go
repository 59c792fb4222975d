package cli

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/internal/report"
)

// beside reports what a server says about an object beside its schema.
func (r *request) beside(object, old tree, out *verdict) {
	if scale := r.version.version.Scale; scale != nil {
		r.scale(scale, object, out)
	}
	if r.status {
		return
	}
	metadata := object.member("metadata")
	if old == nil && metadata.text("resourceVersion") != "" {
		out.add(report.Diagnostic{Rule: ruleResourceVersion, Path: "metadata.resourceVersion", Pointer: "/metadata/resourceVersion",
			Message: "resourceVersion should not be set on objects to be created", Place: out.of("/metadata/resourceVersion")})
	}
	r.finalizers(metadata, old, out)
}

// finalizers warns of the names of new finalizers.
func (r *request) finalizers(metadata, old tree, out *verdict) {
	known := make(map[string]bool)
	if old != nil {
		before, _ := old.member("metadata")["finalizers"].([]any)
		for _, item := range before {
			name, _ := item.(string)
			known[name] = true
		}
	}
	list, _ := metadata["finalizers"].([]any)
	for i, item := range list {
		name, _ := item.(string)
		if known[name] || len(known) > maxLookups {
			continue
		}
		known[name] = true
		for _, text := range finalizerWarnings(name) {
			pointer := fmt.Sprintf("/metadata/finalizers/%d", i)
			out.add(report.Diagnostic{Rule: ruleFinalizer, Path: "metadata.finalizers", Pointer: pointer, Place: out.of(pointer),
				Message: fmt.Sprintf("metadata.finalizers: %q: %s", name, text)})
		}
	}
}

// ownFinalizers are those of Kubernetes itself, which need no domain.
var ownFinalizers = []string{"orphan", "foregroundDeletion", "kubernetes"}

// finalizerWarnings is what a server remarks about the name of a new finalizer.
func finalizerWarnings(name string) []string {
	texts := validation.IsQualifiedName(name)
	if strings.Contains(name, "/") || slices.Contains(ownFinalizers, name) {
		return texts
	}
	path := ""
	if strings.Contains(name, ".") {
		path = " including a path (/)"
	}
	return append(texts, "prefer a domain-qualified finalizer name"+path+" to avoid accidental conflicts with other finalizer writers")
}

// scale checks what the scale subresource reads.
func (r *request) scale(paths *crd.Scale, object tree, out *verdict) {
	replicas := []string{paths.SpecReplicasPath, paths.StatusReplicasPath}
	if r.status {
		replicas = replicas[1:]
	}
	for _, path := range replicas {
		n, _, err := unstructured.NestedInt64(object, scaleSteps(path)...)
		switch {
		case path == "":
		case err != nil:
			out.scale(path, n, err.Error())
		case n < 0:
			out.scale(path, n, "should be a non-negative integer")
		case n > math.MaxInt32:
			out.scale(path, n, fmt.Sprintf("should be less than or equal to %v", math.MaxInt32))
		}
	}
	if path := paths.LabelSelectorPath; path != nil && *path != "" {
		if text, _, err := unstructured.NestedString(object, scaleSteps(*path)...); err != nil {
			out.scale(*path, text, err.Error())
		}
	}
}

// scaleSteps returns the names in a path such as .spec.replicas.
func scaleSteps(path string) []string { return strings.Split(strings.TrimPrefix(path, "."), ".") }

func (v *verdict) scale(path string, value any, detail string) {
	pointer := "/" + strings.Join(scaleSteps(path), "/")
	v.add(report.Diagnostic{Rule: ruleScale, Message: field.Invalid(field.NewPath(path), value, detail).Error(), Path: path,
		Pointer: pointer, Place: v.of(pointer)})
}
