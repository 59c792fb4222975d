package request

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	kubeversion "k8s.io/apimachinery/pkg/version"

	"github.com/espalier-dev/espalier/crd"
)

// standardFinalizers need no domain. The last one is that of namespaces.
var standardFinalizers = []string{metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents, "kubernetes"}

// FinalizerWarning is a warning about the name of a finalizer.
type FinalizerWarning struct {
	Finalizer string
	Text      string // as API servers send it
}

// FinalizerWarnings warns of new finalizers whose names others might choose too. They are
// sorted by finalizer.
func FinalizerWarnings(finalizers, before []string) []FinalizerWarning {
	if len(finalizers) == 0 {
		return nil
	}
	var out []FinalizerWarning
	for _, f := range sets.List(sets.New(finalizers...).Difference(sets.New(before...))) {
		for _, detail := range finalizerFaults(f) {
			out = append(out, FinalizerWarning{f, fmt.Sprintf("metadata.finalizers: %q: %s", f, detail)})
		}
	}
	return out
}

func finalizerFaults(name string) []string {
	faults := validation.IsQualifiedName(name)
	if strings.Contains(name, "/") || slices.Contains(standardFinalizers, name) {
		return faults
	}
	path := ""
	if strings.Contains(name, ".") {
		path = " including a path (/)"
	}
	return append(faults, "prefer a domain-qualified finalizer name"+path+" to avoid accidental conflicts with other finalizer writers")
}

// DeprecationWarning returns what API servers tell clients that use a deprecated version of a
// CRD. They recommend the newest version that is served and not deprecated.
func DeprecationWarning(d *crd.CRD, version *crd.Version) string {
	if version.DeprecationWarning != nil {
		return *version.DeprecationWarning
	}
	text := fmt.Sprintf("%s/%s %s is deprecated", d.Group, version.Name, d.Kind)
	best := ""
	for i := range d.Versions {
		other := &d.Versions[i]
		if !other.Served || other.Deprecated || kubeversion.CompareKubeAwareVersionStrings(version.Name, other.Name) >= 0 {
			continue
		}
		if best == "" || kubeversion.CompareKubeAwareVersionStrings(other.Name, best) > 0 {
			best = other.Name
		}
	}
	if best == "" {
		return text
	}
	return text + fmt.Sprintf("; use %s/%s %s", d.Group, best, d.Kind)
}
