package openapihandler

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	generated "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	features "k8s.io/apiserver/pkg/util/openapi"
	"k8s.io/kube-openapi/pkg/builder"
	"k8s.io/kube-openapi/pkg/builder3"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/espalier-dev/espalier/crd/openapi"
)

// BuiltIn is a version of a built-in group, which does not depend on the catalog. Its
// resources name their models, which are among the OpenAPI definitions.
type BuiltIn struct {
	Group, Version string
	Resources      []openapi.Resource
	Definitions    common.GetOpenAPIDefinitions
}

// APIExtensions returns the versions of the group of the CRDs themselves.
func APIExtensions() []BuiltIn {
	var list []BuiltIn
	for _, v := range []string{"v1", "v1beta1"} {
		const group, kind = "apiextensions.k8s.io", "CustomResourceDefinition"
		model := "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions." + v + "." + kind
		list = append(list, BuiltIn{
			Group: group, Version: v, Definitions: generated.GetOpenAPIDefinitions,
			Resources: []openapi.Resource{{
				Group: group, Version: v, Plural: "customresourcedefinitions", Kind: kind, ListKind: kind + "List",
				Model: model, ListModel: model + "List", Status: true,
			}},
		})
	}
	return list
}

const metaModels = "io.k8s.apimachinery.pkg.apis.meta.v1."

// metaTypes are the models that the paths and models of every resource refer to.
var metaTypes = []string{metaModels + "DeleteOptions", metaModels + "ListMeta", metaModels + "ObjectMeta", metaModels + "Patch", metaModels + "Status"}

// models are encoded schemas by name.
type models map[string][]byte

// static is the part of the documents that does not depend on the catalog. It is made
// on the first request.
type static struct {
	meta, scale map[openapi.Format]models
	builtIn     []map[openapi.Format]models // beyond those of meta
	reserved    map[string]bool             // what names of models begin with, up to the kind
	form        [sha256.Size]byte           // changes with whatever documents have in common
}

// formRevision must be changed when the document of an unchanged CRD changes.
const formRevision = "1"

func newStatic(builtIn []BuiltIn) (*static, error) {
	s := &static{}
	var err error
	if s.meta, err = encodeModels(generated.GetOpenAPIDefinitions, nil, metaTypes); err != nil {
		return nil, err
	}
	if s.scale, err = encodeModels(generated.GetOpenAPIDefinitions, nil, []string{openapi.ScaleModel}); err != nil {
		return nil, err
	}
	for i := range builtIn {
		var names []string
		for _, r := range builtIn[i].Resources {
			names = append(names, r.Model, r.ListModel)
		}
		m, err := encodeModels(builtIn[i].Definitions, builtIn[i].Resources, names)
		if err != nil {
			return nil, fmt.Errorf("%s/%s: %w", builtIn[i].Group, builtIn[i].Version, err)
		}
		s.builtIn = append(s.builtIn, m)
	}
	s.reserved = map[string]bool{}
	for _, all := range append([]map[openapi.Format]models{s.meta, s.scale}, s.builtIn...) {
		for name := range all[openapi.V3] {
			s.reserved[name[:strings.LastIndexByte(name, '.')+1]] = true
		}
	}
	s.form = s.sum()
	return s, nil
}

// sum is of everything that documents have in common.
func (s *static) sum() (sum [sha256.Size]byte) {
	h := sha256.New()
	write := func(data []byte) { _, _ = h.Write(data) } // never fails
	write([]byte(formRevision))
	sample := openapi.Resource{Group: "g", Version: "v", Plural: "p", Kind: "K", ListKind: "L", Namespaced: true, Status: true, Scale: true}
	for _, f := range []openapi.Format{openapi.V3, openapi.V2} {
		write(openapi.AppendPaths(nil, sample, f))
		for _, all := range append([]map[openapi.Format]models{s.meta, s.scale}, s.builtIn...) {
			for _, name := range slices.Sorted(maps.Keys(all[f])) {
				write(all[f][name])
			}
		}
	}
	write(openapi.AppendParameters(nil))
	h.Sum(sum[:0])
	return sum
}

// encodeModels returns the models with some names and all that they refer to.
func encodeModels(definitions common.GetOpenAPIDefinitions, resources []openapi.Resource, names []string) (map[openapi.Format]models, error) {
	definitions = features.GetOpenAPIDefinitionsWithoutDisabledFeatures(definitions)
	kinds := kindsOf(resources)
	v3, err := builder3.BuildOpenAPIDefinitionsForResources(&common.OpenAPIV3Config{Info: &spec.Info{}, GetDefinitions: definitions, GetDefinitionName: kinds}, names...)
	if err != nil {
		return nil, err
	}
	v2, err := builder.BuildOpenAPIDefinitionsForResources(&common.Config{Info: &spec.Info{}, GetDefinitions: definitions, GetDefinitionName: kinds}, names...)
	if err != nil {
		return nil, err
	}
	out := map[openapi.Format]models{openapi.V3: {}, openapi.V2: {}}
	for name, s := range v3 {
		if out[openapi.V3][name], err = json.Marshal(s); err != nil {
			return nil, err
		}
	}
	for name, s := range handler.PruneDefaults(v2.Definitions) {
		if out[openapi.V2][name], err = json.Marshal(s); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// kind is the kind of a model.
type kind struct{ group, version, kind string }

// kindsOf returns a function that knows the kinds of models: those of
// resources, and of what all resources share. Options are of the version that
// they come from; that every other group has them, too, is of no use to
// clients, and would be most of a document.
func kindsOf(resources []openapi.Resource) func(string) (string, spec.Extensions) {
	kinds := map[string]kind{
		metaModels + "DeleteOptions": {"", "v1", "DeleteOptions"},
		metaModels + "Status":        {"", "v1", "Status"},
		openapi.ScaleModel:           {"autoscaling", "v1", "Scale"},
	}
	for _, r := range resources {
		kinds[r.Model] = kind{r.Group, r.Version, r.Kind}
		kinds[r.ListModel] = kind{r.Group, r.Version, r.ListKind}
	}
	return func(model string) (string, spec.Extensions) {
		k, ok := kinds[model]
		if !ok {
			return model, nil
		}
		return model, spec.Extensions{"x-kubernetes-group-version-kind": []any{
			map[string]any{"group": k.group, "version": k.version, "kind": k.kind},
		}}
	}
}
