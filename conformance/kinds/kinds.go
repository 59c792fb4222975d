package kinds

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	v1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/conformance/kinds/generator"
)

// groups are those whose kinds are compared. apiextensions.k8s.io has suites of its own.
var groups = []string{
	"", "admissionregistration.k8s.io", "apiregistration.k8s.io", "apps", "authentication.k8s.io", "authorization.k8s.io", "autoscaling", "batch",
	"certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "flowcontrol.apiserver.k8s.io", "networking.k8s.io", "node.k8s.io",
	"policy", "rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io", "storagemigration.k8s.io",
}

// exclusive are kinds whose objects change how the servers treat other objects. They run alone.
var exclusive = []string{
	"apiservices", "deviceclasses", "flowschemas", "ingressclasses", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings", "mutatingwebhookconfigurations",
	"priorityclasses", "prioritylevelconfigurations", "servicecidrs", "storageclasses", "validatingadmissionpolicies", "validatingadmissionpolicybindings",
	"validatingwebhookconfigurations", "namespaces", "runtimeclasses",
}

// unsettled are kinds whose status kube-apiserver itself writes at any time. Their status is not compared.
var unsettled = []string{"apiservices"}

// A Kind is a resource in one version.
type Kind struct {
	ID        string // plural, plural.group or plural.version.group
	Resource  v1.APIResource
	Group     string
	Version   string
	Sub       map[string]v1.APIResource // by name without the plural
	Schema    *generator.Schema
	Seeds     []map[string]any
	Known     generator.Known
	Exclusive bool
	fixed     bool // the seeds are created as they are, each once, and then with changes
	unsettled bool // kube-apiserver writes its status
}

var stable = regexp.MustCompile(`^v[0-9]+$`)

// Discover returns the kinds of a server that objects can be created of, sorted.
func Discover(ctx context.Context, c *Client) ([]*Kind, error) {
	versions := []string{"v1"} // of the core group
	var list v1.APIGroupList
	if err := c.get(ctx, "/apis", &list); err != nil {
		return nil, err
	}
	var found []*Kind
	for _, group := range groups {
		if group != "" {
			versions = versions[:0]
			for _, g := range list.Groups {
				for _, v := range g.Versions {
					if g.Name == group && stable.MatchString(v.Version) {
						versions = append(versions, v.Version)
					}
				}
			}
		}
		for _, version := range versions {
			kinds, err := discoverVersion(ctx, c, group, version)
			if err != nil {
				return nil, err
			}
			found = append(found, kinds...)
		}
	}
	name(found)
	slices.SortFunc(found, func(a, b *Kind) int { return cmp.Compare(a.ID, b.ID) })
	return found, nil
}

func discoverVersion(ctx context.Context, c *Client, group, version string) ([]*Kind, error) {
	var list v1.APIResourceList
	if err := c.get(ctx, base(group, version), &list); err != nil {
		return nil, err
	}
	var kinds []*Kind
	for _, r := range list.APIResources {
		if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "create") {
			continue
		}
		k := &Kind{Resource: r, Group: group, Version: version, Sub: map[string]v1.APIResource{}, Exclusive: slices.Contains(exclusive, r.Name), unsettled: slices.Contains(unsettled, r.Name)}
		for _, s := range list.APIResources {
			if sub, ok := strings.CutPrefix(s.Name, r.Name+"/"); ok {
				k.Sub[sub] = s
			}
		}
		kinds = append(kinds, k)
	}
	return kinds, nil
}

// name gives every kind its ID.
func name(kinds []*Kind) {
	versions := map[string]int{}
	for _, k := range kinds {
		versions[k.Resource.Name+"."+k.Group]++
	}
	for _, k := range kinds {
		switch {
		case versions[k.Resource.Name+"."+k.Group] > 1:
			k.ID = k.Resource.Name + "." + k.Version + "." + k.Group
		case k.Group != "":
			k.ID = k.Resource.Name + "." + k.Group
		default:
			k.ID = k.Resource.Name
		}
	}
}

// Matches reports whether a name means the kind: its ID, its plural, or plural.group.
func (k *Kind) Matches(name string) bool {
	return name == k.ID || name == k.Resource.Name || name == k.Resource.Name+"."+k.Group
}

// Select returns the kinds that the names mean, all if there are none.
func Select(kinds []*Kind, names []string) ([]*Kind, error) {
	if len(names) == 0 {
		return kinds, nil
	}
	var out []*Kind
	for _, name := range names {
		before := len(out)
		for _, k := range kinds {
			if k.Matches(name) && !slices.Contains(out, k) {
				out = append(out, k)
			}
		}
		if len(out) == before && !slices.ContainsFunc(out, func(k *Kind) bool { return k.Matches(name) }) {
			return nil, fmt.Errorf("kube-apiserver serves no stable kind %q", name)
		}
	}
	return out, nil
}

// base is the path of a group and version.
func base(group, version string) string {
	if group == "" {
		return "/api/" + version
	}
	return "/apis/" + group + "/" + version
}

// apiVersion is what objects of the kind say.
func (k *Kind) apiVersion() string {
	if k.Group == "" {
		return k.Version
	}
	return k.Group + "/" + k.Version
}

// path is the path of the collection.
func (k *Kind) path() string {
	if k.Resource.Namespaced {
		return base(k.Group, k.Version) + "/namespaces/" + k.namespace() + "/" + k.Resource.Name
	}
	return base(k.Group, k.Version) + "/" + k.Resource.Name
}

// namespace is where objects of the kind are made.
func (k *Kind) namespace() string {
	return "kinds-" + strings.ReplaceAll(k.ID, ".", "-")
}

// can reports whether the kind has a verb.
func (k *Kind) can(verb string) bool { return slices.Contains(k.Resource.Verbs, verb) }

// document is the path of the OpenAPI document that has the kind.
func (k *Kind) document() string { return "/openapi/v3" + base(k.Group, k.Version) }

// learn reads the schema of the kind in the server's OpenAPI document.
func (k *Kind) learn(ctx context.Context, c *Client, documents map[string]*generator.Document) error {
	at := k.document()
	d := documents[at]
	if d == nil {
		data, err := c.read(ctx, at)
		if err != nil {
			return err
		}
		if d, err = generator.Parse(data); err != nil {
			return err
		}
		documents[at] = d
	}
	if k.Schema = d.Kind(k.Group, k.Version, k.Resource.Kind); k.Schema == nil {
		return fmt.Errorf("%s has no schema of %s", at, k.ID)
	}
	return nil
}
