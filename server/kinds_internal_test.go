package server

import (
	"testing"

	"github.com/espalier-dev/espalier/server/catalog/restmapping"
)

// What a server does not have is all that one with all kinds has besides.
func TestKindsOff(t *testing.T) {
	for kinds, want := range map[Kinds]map[string]string{
		KindsAll:          {},
		KindsControlPlane: {"pods": "/pods", "services": "/services/specs", "deployments.apps": "/deployments"},
		KindsCustom:       {"pods": "/pods", "secrets": "/secrets", "serviceaccounts": "/serviceaccounts", "configmaps": "/configmaps", "events": "/events"},
	} {
		off := map[string]restmapping.Kind{}
		for _, k := range kinds.off() {
			off[k.String()] = k
		}
		for name, prefix := range want {
			if off[name].Prefix != prefix {
				t.Errorf("%s: the prefix of %s is %q", kinds, name, off[name].Prefix)
			}
		}
		if _, ok := off["secrets"]; ok != (kinds == KindsCustom) || kinds == KindsAll && len(off) > 0 {
			t.Errorf("%s has not: %v", kinds, off)
		}
		for _, name := range []string{"namespaces", "resourcequotas", "leases.coordination.k8s.io", "events.events.k8s.io", "nodes"} {
			if _, ok := off[name]; ok {
				t.Errorf("%s: %s is off", kinds, name)
			}
		}
	}
}
