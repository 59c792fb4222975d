package bindings

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"sync"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/server/apis/customresourcedefinition"
	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/controllers/crdcontroller"
)

//go:embed apiexport.yaml
var exportCRD []byte

//go:embed apibinding.yaml
var bindingCRD []byte

// Group is the API group of exports and bindings.
const Group = "apis.espalier.dev"

// The resources of the group.
var (
	Exports  = schema.GroupVersionResource{Group: Group, Version: "v1alpha1", Resource: "apiexports"}
	Bindings = schema.GroupVersionResource{Group: Group, Version: "v1alpha1", Resource: "apibindings"}
)

// Fixed are the CRDs of the group. Every tenant has them; they are stored nowhere.
var Fixed = sync.OnceValues(func() ([]*catalog.Entry, error) {
	var all []*catalog.Entry
	for _, text := range [][]byte{exportCRD, bindingCRD} {
		e, err := fixed(text)
		if err != nil {
			return nil, fmt.Errorf("a CRD of the group %s: %w", Group, err)
		}
		all = append(all, e)
	}
	return all, nil
})

// fixed reads a CRD, and gives it what a stored one has.
func fixed(text []byte) (*catalog.Entry, error) {
	data, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, err
	}
	o, _, _, err := customresourcedefinition.NewDecoder("v1").FromRequest(data, nil, true)
	if err != nil {
		return nil, err
	}
	o.SetUID(types.UID("built-in-" + o.GetName()))
	o.SetGeneration(1)
	o.SetResourceVersion("1")
	var names struct {
		Spec struct {
			Names    v1.CustomResourceDefinitionNames
			Versions []struct{ Name string }
		}
	}
	if err := json.Unmarshal(data, &names); err != nil {
		return nil, err
	}
	crdcontroller.SetStatus(o, &v1.CustomResourceDefinitionStatus{
		AcceptedNames: names.Spec.Names, StoredVersions: []string{names.Spec.Versions[0].Name}, ObservedGeneration: 1,
		Conditions: []v1.CustomResourceDefinitionCondition{{Type: v1.NamesAccepted, Status: v1.ConditionTrue}, {Type: v1.Established, Status: v1.ConditionTrue}},
	})
	return catalog.Fixed(o)
}
