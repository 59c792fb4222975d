package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

// plural is the resource of an item or operation.
func plural(resource string) string {
	if resource == "" {
		return "things"
	}
	return resource
}

// keyOf identifies an object: resource/name.
func keyOf(resource, name string) string { return plural(resource) + "/" + name }

// namespaceOf is what stands before the first slash of a name.
func namespaceOf(name string) string {
	namespace, _, namespaced := strings.Cut(name, "/")
	if !namespaced {
		return ""
	}
	return namespace
}

// difference says in which way a shown item differs from the truth, or "". The schema
// and version of the bytes are not compared: a server converts, prunes and defaults what
// it reads by the schema of that moment.
func difference(shown, truth *history.Item) string {
	switch {
	case shown.Name != truth.Name:
		return fmt.Sprintf("name is %q, in etcd %q", shown.Name, truth.Name)
	case shown.UID != truth.UID:
		return fmt.Sprintf("UID is %q, in etcd %q", shown.UID, truth.UID)
	case !slices.Equal(shown.Log, truth.Log):
		return fmt.Sprintf("log is %v, in etcd %v", tail(shown.Log), tail(truth.Log))
	case !equalMaps(shown.Marks, truth.Marks):
		return fmt.Sprintf("marks are %v, in etcd %v", shown.Marks, truth.Marks)
	case shown.Deleting != truth.Deleting:
		return fmt.Sprintf("deleting is %t, in etcd %t", shown.Deleting, truth.Deleting)
	case !slices.Equal(shown.Finalizers, truth.Finalizers):
		return fmt.Sprintf("finalizers are %v, in etcd %v", shown.Finalizers, truth.Finalizers)
	case !slices.Equal(shown.Owners, truth.Owners):
		return fmt.Sprintf("owners are %v, in etcd %v", shown.Owners, truth.Owners)
	case !equalMaps(shown.Labels, truth.Labels):
		return fmt.Sprintf("labels are %v, in etcd %v", shown.Labels, truth.Labels)
	}
	return ""
}

func equalMaps(a, b map[string]string) bool {
	return len(a) == 0 && len(b) == 0 || maps.Equal(a, b)
}

// tail shortens a log for a message.
func tail(log []string) string {
	const shown = 4
	if len(log) <= shown {
		return fmt.Sprintf("%v", log)
	}
	return fmt.Sprintf("[… %s] (%d)", strings.Join(log[len(log)-shown:], " "), len(log))
}

// describe is an operation in a few words.
func describe(o *history.Operation) string {
	var b strings.Builder
	b.WriteString(o.Verb)
	if o.Key != "" {
		b.WriteString(" " + o.Key)
	}
	if o.ID != "" {
		b.WriteString(" " + o.ID)
	}
	if o.Mode != "" {
		b.WriteString(" (" + o.Mode + ")")
	}
	return b.String()
}
