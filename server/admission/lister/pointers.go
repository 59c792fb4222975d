package lister

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Pointers returns pointers to the items of a list.
func Pointers[T any](items []T) []*T {
	all := make([]*T, len(items))
	for i := range items {
		all[i] = &items[i]
	}
	return all
}

// Newest returns the newest object that is one of those wanted, and false if there is none.
// Of two that were created in the same second, it is the first by name.
func Newest[T metav1.Object](all []T, wanted func(T) bool) (found T, ok bool) {
	for _, one := range all {
		if wanted(one) && (!ok || isNewer(one, found)) {
			found, ok = one, true
		}
	}
	return found, ok
}

func isNewer(a, b metav1.Object) bool {
	at, than := a.GetCreationTimestamp(), b.GetCreationTimestamp()
	if at.Time.Equal(than.Time) {
		return a.GetName() < b.GetName()
	}
	return at.After(than.Time)
}
