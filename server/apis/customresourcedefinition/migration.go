package customresourcedefinition

import (
	"bytes"
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/controllers/migration"
)

// Migration returns how stored CRDs are rewritten: those that are not in
// apiextensions.k8s.io/v1 become so, and all get the current encryption key.
func (d *Resource) Migration() *migration.Resource {
	decoder := Decoder{version: stable}
	current := func(data []byte) bool {
		return bytes.HasPrefix(data, []byte(`{"apiVersion":"`+stable.String()+`"`))
	}
	return &migration.Resource{
		Resource: schema.GroupResource{Group: stable.Group, Resource: "customresourcedefinitions"}, Folder: catalog.Key, Current: current,
		Rewrite: func(ctx context.Context, values []migration.Value) ([]migration.Rewritten, error) {
			results := make([]migration.Rewritten, len(values))
			for i, from := range values {
				results[i].Version = stable.Version
				o, err := decoder.FromStorage(bytes.TrimRight(from.Data, "\n"))
				if results[i].Err = err; err == nil && !current(from.Data) {
					results[i].Data = append(o.AppendJSON(nil), '\n')
				}
			}
			return results, ctx.Err()
		},
	}
}
