package namespace

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The reasons and texts of conditions are upstream's: people and scripts look for them.

// fine is what conditions say if nothing is in the way.
var fine = []corev1.NamespaceCondition{
	{Type: corev1.NamespaceDeletionDiscoveryFailure, Reason: "ResourcesDiscovered", Message: "All resources successfully discovered"},
	{Type: corev1.NamespaceDeletionGVParsingFailure, Reason: "ParsedGroupVersions", Message: "All legacy kube types successfully parsed"},
	{Type: corev1.NamespaceDeletionContentFailure, Reason: "ContentDeleted", Message: "All content successfully deleted, may be waiting on finalization"},
	{Type: corev1.NamespaceContentRemaining, Reason: "ContentRemoved", Message: "All content successfully removed"},
	{Type: corev1.NamespaceFinalizersRemaining, Reason: "ContentHasNoFinalizers", Message: "All content-preserving finalizers finished"},
}

// maxMessage bounds what a condition says. An object in etcd has its limits.
const maxMessage = 32 << 10

// conditions say what is left. The second is always fine: the kinds come from the
// catalog, where nothing is parsed.
func (r *remains) conditions() []corev1.NamespaceCondition {
	all := slices.Clone(fine)
	for i := range all {
		all[i].Status = corev1.ConditionFalse
	}
	set := func(i int, reason, message string) {
		if len(message) > maxMessage {
			message = strings.ToValidUTF8(message[:maxMessage], "") + "…"
		}
		all[i].Status, all[i].Reason, all[i].Message = corev1.ConditionTrue, reason, message
	}
	if len(r.unknown) > 0 {
		texts := make([]string, len(r.unknown))
		for i, u := range r.unknown {
			_, group := u.Split()
			texts[i] = group + ": " + u.Error()
		}
		set(0, "DiscoveryFailed", fmt.Sprintf("Discovery failed for some groups, %d failing: unable to retrieve the complete list of server APIs: %s", len(texts), strings.Join(texts, ", ")))
	}
	if len(r.failures) > 0 {
		texts := make([]string, len(r.failures))
		for i, err := range r.failures {
			texts[i] = err.Error()
		}
		slices.Sort(texts)
		set(2, "ContentDeletionFailed", fmt.Sprintf("Failed to delete all resource types, %d remaining: %s", len(texts), strings.Join(texts, ", ")))
	}
	if len(r.count) > 0 {
		set(3, "SomeResourcesRemain", "Some resources are remaining: "+each(r.count, "%s has %d resource instances"))
	}
	if len(r.finalizers) > 0 {
		set(4, "SomeFinalizersRemain", "Some content in the namespace has finalizers remaining: "+each(r.finalizers, "%s in %d resource instances"))
	}
	return all
}

// each writes the entries of a map, sorted.
func each[N int | int64](m map[string]N, format string) string {
	texts := make([]string, 0, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		texts = append(texts, fmt.Sprintf(format, name, m[name]))
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}

// setConditions puts conditions in the place of those of the same type, and
// reports whether that changes anything.
func setConditions(status *corev1.NamespaceStatus, conditions []corev1.NamespaceCondition) (changed bool) {
	for _, c := range conditions {
		c.LastTransitionTime = metav1.Now()
		i := slices.IndexFunc(status.Conditions, func(o corev1.NamespaceCondition) bool { return o.Type == c.Type })
		if i < 0 {
			status.Conditions, changed = append(status.Conditions, c), true
			continue
		}
		old := &status.Conditions[i]
		if old.Status == c.Status && old.Reason == c.Reason && old.Message == c.Message {
			continue
		}
		if old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
		*old, changed = c, true
	}
	return changed
}
