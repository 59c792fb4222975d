package bindings

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Export is the spec of an APIExport.
type Export struct {
	Resources []string  `json:"resources"`
	Consumers Consumers `json:"consumers"`
}

// Consumers says which tenants may bind an export.
type Consumers struct {
	Everyone bool     `json:"everyone"`
	Tenants  []string `json:"tenants"`
	Selector struct {
		MatchLabels map[string]string `json:"matchLabels"`
	} `json:"selector"`
}

// Has reports whether a tenant with some labels may bind the export.
func (c *Consumers) Has(tenant string, labels map[string]string) bool {
	if c.Everyone || slices.Contains(c.Tenants, tenant) {
		return true
	}
	for key, value := range c.Selector.MatchLabels {
		if is, ok := labels[key]; !ok || is != value {
			return false
		}
	}
	return len(c.Selector.MatchLabels) > 0
}

// exportOf reads a stored APIExport. One that is being deleted exports nothing.
func exportOf(data []byte) (*Export, error) {
	var o struct {
		Metadata struct {
			DeletionTimestamp *string `json:"deletionTimestamp"`
		} `json:"metadata"`
		Spec Export `json:"spec"`
	}
	if err := json.Unmarshal(data, &o); err != nil {
		return nil, err
	}
	if o.Metadata.DeletionTimestamp != nil {
		return nil, nil
	}
	return &o.Spec, nil
}

// resourceOf is the resource of a CRD with a name.
func resourceOf(crd string) schema.GroupResource {
	resource, group, _ := strings.Cut(crd, ".")
	return schema.GroupResource{Group: group, Resource: resource}
}

// Binding is an APIBinding.
type Binding struct {
	*unstructured.Unstructured
	Spec struct {
		Export struct {
			Tenant string `json:"tenant"`
			Name   string `json:"name"`
		} `json:"export"`
		Accept []Rule `json:"accept"`
	}
}

// Rule is what a consumer accepts.
type Rule struct {
	Resources []string `json:"resources"`
	Verbs     []string `json:"verbs"`
}

// all is what stands for every resource, subresource or verb.
const all = "*"

// bindingOf reads an APIBinding.
func bindingOf(o *unstructured.Unstructured) (*Binding, error) {
	b := &Binding{Unstructured: o}
	data, err := json.Marshal(o.Object["spec"])
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &b.Spec); err != nil {
		return nil, fmt.Errorf("the APIBinding %s: %w", o.GetName(), err)
	}
	return b, nil
}

// Grant is what a consumer accepts of its provider, for one resource. It is stored where the
// provider finds it.
type Grant struct {
	Tenant  string `json:"tenant"` // the name of the consumer
	Binding string `json:"binding"`
	// Verbs are those that are accepted, by subresource; "" is the object itself, and "*" all.
	Verbs map[string][]string `json:"verbs,omitempty"`
}

// grantOf is what a binding accepts for a resource.
func grantOf(tenant string, b *Binding, r schema.GroupResource) Grant {
	g := Grant{Tenant: tenant, Binding: b.GetName()}
	for _, rule := range b.Spec.Accept {
		for _, name := range rule.Resources {
			resource, sub, _ := strings.Cut(name, "/")
			switch {
			case name == all:
				g.add(all, rule.Verbs)
			case resource != r.String():
			case sub == all:
				for _, sub := range subresources {
					g.add(sub, rule.Verbs)
				}
			case sub == "" || slices.Contains(subresources, sub):
				g.add(sub, rule.Verbs)
			}
		}
	}
	return g
}

// subresources are all that a CRD can have. The provider has grants in memory: names that mean
// nothing are not in them.
var subresources = []string{"status", "scale"}

func (g *Grant) add(sub string, verbs []string) {
	if g.Verbs == nil {
		g.Verbs = map[string][]string{}
	}
	g.Verbs[sub] = slices.Compact(slices.Sorted(slices.Values(slices.Concat(g.Verbs[sub], verbs))))
}

// Accepts reports whether the provider may do something.
func (g *Grant) Accepts(subresource, verb string) bool {
	for _, verbs := range [][]string{g.Verbs[subresource], g.Verbs[all]} {
		if slices.Contains(verbs, verb) || slices.Contains(verbs, all) {
			return true
		}
	}
	return false
}

// Seen reports whether the objects are among those that the provider lists and watches for all
// consumers.
func (g *Grant) Seen() bool { return g.Accepts("", "list") && g.Accepts("", "watch") }
