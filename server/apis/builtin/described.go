package builtin

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/espalier-dev/espalier/server/apis/builtin/models"
)

// describedTypes are those of one kind that client-go does not apply: reviews and
// APIServices. They come from what the server publishes about the kind, so that lists
// with a key, such as the owners of an object, have an entry for each item in managed
// fields. Most kinds like it are never written, so they are made with the first write.
func describedTypes(kind schema.GroupVersionKind, sample any) lazyTypes {
	return sync.OnceValue(func() managedfields.TypeConverter {
		schemas := map[string]*spec.Schema{}
		definitions := models.Definitions(sample)(func(name string) spec.Ref { return spec.MustCreateRef("#/components/schemas/" + name) })
		for name, definition := range definitions {
			schemas[name] = &definition.Schema
		}
		schemas[sample.(interface{ OpenAPIModelName() string }).OpenAPIModelName()].AddExtension("x-kubernetes-group-version-kind",
			[]any{map[string]any{"group": kind.Group, "version": kind.Version, "kind": kind.Kind}})
		types, err := managedfields.NewTypeConverter(schemas, false)
		if err != nil {
			panic(fmt.Sprintf("builtin: the types of %v cannot be converted: %v", kind, err)) // a test converts each
		}
		return types
	})
}
