package builtin

import (
	"slices"
	"testing"

	"github.com/espalier-dev/espalier/crd/rules"
)

// TestGenerationsAreCounted: the server decides when it increments a generation, and the
// rules say whether it does, which the command line reads.
func TestGenerationsAreCounted(t *testing.T) {
	csr, _, _ := CertificateSigningRequests()
	all := slices.Concat(Standard(), Events(0), Policies(PolicyOptions{}), Roles(), []Resource{csr})
	for _, r := range rules.All() {
		i := slices.IndexFunc(all, func(one Resource) bool { return one.version().WithKind(one.Kind) == r.GroupVersionKind })
		if i < 0 || !all[i].stored() {
			continue // APIServices are of another package, events.k8s.io is an alias
		}
		if s := &all[i].Strategy; (s.Generation != nil) != r.Generation || s.MetadataLast != r.MetadataLast {
			t.Errorf("%s: the server counts %v, the rules say %v", r.Kind, s.Generation != nil, r.Generation)
		}
	}
}
