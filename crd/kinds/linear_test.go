package kinds

import (
	"fmt"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/costtest"
)

// grower makes objects with long lists. In every list the first item has long lists in
// turn, so that an object is about as large as its type has lists, times n.
type grower struct {
	n        int
	variant  string
	smallest int
	// long are the lists that are long, as type.field; nil: all.
	long map[string]bool
}

// value makes a value of a type. Number tells items apart, and long is whether its own
// lists are long.
func (g grower) value(t *fieldType, name string, number int, long bool) any {
	switch t.form {
	case quantityForm:
		return fmt.Sprint(number + 1)
	case integerForm:
		return int64(number + 1)
	case intOrStringForm:
		return int64(number + 1)
	case floatForm:
		return float64(number)
	case boolForm:
		return g.variant == "booleans"
	case objectForm:
		return g.object(t.object, number, long)
	case listForm:
		list := []any{}
		for i := range g.length(long) {
			list = append(list, g.value(t.items, name, g.number(i), long && i == 0))
		}
		return list
	case mapForm:
		m := map[string]any{}
		for i := range g.length(long) {
			m[g.text(name, i)] = g.value(t.items, name, i, long && i == 0)
		}
		return m
	}
	return g.text(name, number)
}

func (g grower) length(long bool) int {
	if long {
		return g.n
	}
	return g.smallest
}

func (g grower) number(i int) int {
	if g.variant == "equal" {
		return 0
	}
	return i
}

// text makes names that agree between lists.
func (g grower) text(name string, number int) string {
	switch name {
	case "ip", "addresses", "podIP", "hostIP", "clusterIPs", "externalIPs", "podIPs", "hostIPs":
		return fmt.Sprintf("10.%d.%d.%d", number>>16&255, number>>8&255, number&255)
	case "cidr", "podCIDRs", "except", "loadBalancerSourceRanges":
		return fmt.Sprintf("10.%d.%d.%d/32", number>>16&255, number>>8&255, number&255)
	case "mountPath", "path", "devicePath":
		return fmt.Sprintf("/p/%d", number)
	case "operator":
		return "In"
	case "protocol":
		return "TCP"
	case "creationTimestamp", "lastTransitionTime", "startTime", "timeAdded":
		return "2026-01-01T00:00:00Z"
	}
	return fmt.Sprintf("n%d", number)
}

// object makes an object. One field of a union is set: another one by number.
func (g grower) object(t *objectType, number int, long bool) map[string]any {
	m := map[string]any{}
	skip := map[string]bool{}
	if t.data != nil {
		for _, u := range t.data.unions() {
			for i, name := range u.Fields {
				skip[name] = i != number%len(u.Fields)
			}
		}
	}
	for _, name := range t.names {
		if !skip[name] {
			ft := t.fields[name]
			list := ft.form == listForm || ft.form == mapForm
			m[name] = g.value(ft, name, number, long && (!list || g.long == nil || g.long[t.name+"."+name]))
		}
	}
	return m
}

// everything does all that a write and a read do. Long texts and wrong values make rules
// fail in the middle: that is why objects vary.
func everything(k *Kind, tree, old map[string]any) {
	_, _ = k.Default(tree)
	if old != nil {
		_, _ = k.Default(old)
	}
	_, _ = k.Prepare(tree, old)
	k.Validate(tree, old, "")
	k.Validate(tree, old, "status")
	k.Warnings(tree, old)
	k.Row(tree)
	k.Fields(tree)
}

// linear are lists that rules compare with each other, by kind. They are long together.
var linear = []struct{ group, version, plural, lists string }{
	{"", "v1", "pods", "core/v1.PodSpec.containers"},
	{"", "v1", "pods", "core/v1.PodSpec.initContainers core/v1.PodSpec.ephemeralContainers"},
	{"", "v1", "pods", "core/v1.PodSpec.volumes core/v1.Container.volumeMounts core/v1.Container.volumeDevices"},
	{"", "v1", "pods", "core/v1.Container.ports core/v1.Container.env core/v1.Container.envFrom core/v1.Container.resizePolicy"},
	{"", "v1", "pods", "core/v1.ResourceRequirements.limits core/v1.ResourceRequirements.requests core/v1.ResourceRequirements.claims"},
	{"", "v1", "pods", "core/v1.PodSpec.resourceClaims core/v1.ResourceRequirements.claims"},
	{"", "v1", "pods", "core/v1.PodSpec.tolerations core/v1.PodSpec.schedulingGates core/v1.PodSpec.hostAliases core/v1.PodSpec.topologySpreadConstraints"},
	{"", "v1", "pods", "core/v1.PodSpec.nodeSelector meta/v1.ObjectMeta.annotations meta/v1.ObjectMeta.labels core/v1.PodSpec.imagePullSecrets"},
	{"", "v1", "pods", "core/v1.NodeSelector.nodeSelectorTerms core/v1.NodeSelectorTerm.matchExpressions core/v1.NodeSelectorRequirement.values"},
	{"", "v1", "pods", "core/v1.ProjectedVolumeSource.sources core/v1.ConfigMapProjection.items core/v1.SecretProjection.items"},
	{"", "v1", "pods", "core/v1.PodStatus.conditions core/v1.PodStatus.podIPs core/v1.PodStatus.containerStatuses"},
	{"", "v1", "services", "core/v1.ServiceSpec.ports core/v1.ServiceSpec.externalIPs core/v1.LoadBalancerStatus.ingress"},
	{"", "v1", "endpoints", "core/v1.EndpointSubset.addresses core/v1.EndpointSubset.ports"},
	{"", "v1", "nodes", "core/v1.NodeSpec.taints core/v1.NodeStatus.addresses core/v1.NodeStatus.capacity core/v1.NodeStatus.allocatable"},
	{"", "v1", "limitranges", "core/v1.LimitRangeItem.max core/v1.LimitRangeItem.min core/v1.LimitRangeItem.default"},
	{"discovery.k8s.io", "v1", "endpointslices", "discovery/v1.EndpointSlice.endpoints discovery/v1.EndpointSlice.ports discovery/v1.Endpoint.addresses"},
	{"networking.k8s.io", "v1", "networkpolicies", "networking/v1.NetworkPolicySpec.ingress networking/v1.IPBlock.except"},
	{"networking.k8s.io", "v1", "ingresses", "networking/v1.IngressSpec.rules networking/v1.IngressSpec.tls networking/v1.IngressLoadBalancerStatus.ingress"},
	{"batch", "v1", "jobs", "batch/v1.PodFailurePolicy.rules batch/v1.SuccessPolicy.rules batch/v1.JobStatus.conditions"},
	{"resource.k8s.io", "v1", "resourceslices", "resource/v1.ResourceSliceSpec.devices resource/v1.ResourceSliceSpec.sharedCounters"},
	{"resource.k8s.io", "v1", "resourceclaims", "resource/v1.DeviceClaim.requests resource/v1.DeviceAllocationResult.results resource/v1.ResourceClaimStatus.devices"},
	{"resource.k8s.io", "v1", "resourceclaims", "resource/v1.DeviceClaim.requests resource/v1.DeviceClaim.constraints resource/v1.DeviceClaim.config"},
	{"storage.k8s.io", "v1", "csinodes", "storage/v1.CSINodeSpec.drivers storage/v1.CSINodeDriver.topologyKeys"},
}

// longLists makes objects in which the lists of a family are long.
func longLists(t *testing.T, lists string) grower {
	t.Helper()
	g := grower{variant: "distinct", smallest: 1, long: map[string]bool{}}
	for list := range strings.FieldsSeq(lists) {
		g.long[list] = true
		i := strings.LastIndexByte(list, '.')
		if of := readTypes()[list[:i]]; of == nil || of.fields[list[i+1:]] == nil {
			t.Errorf("there is no list %s", list)
		}
	}
	return g
}

// TestLongLists writes what TestCostIsLinear measures, with lists that take no time.
func TestLongLists(t *testing.T) {
	for _, family := range linear {
		k, g := Find(family.group, family.version, family.plural), longLists(t, family.lists)
		g.n = 5
		everything(k, g.object(k.object(), 0, true), g.object(k.object(), 0, true))
	}
}

// TestCostIsLinear writes objects with lists of n and of 10n items.
func TestCostIsLinear(t *testing.T) {
	costtest.Limit(t)
	for _, family := range linear {
		t.Run(family.plural+" "+family.lists, func(t *testing.T) {
			k, g := Find(family.group, family.version, family.plural), longLists(t, family.lists)
			at := func(n int) costtest.Input {
				g := g
				g.n = n
				var tree, old map[string]any
				return costtest.Input{
					Size:   n,
					Before: func() { tree, old = g.object(k.object(), 0, true), g.object(k.object(), 0, true) },
					Run:    func() { everything(k, tree, old) },
				}
			}
			costtest.Linear(t, at(100), at(1000))
		})
	}
}
