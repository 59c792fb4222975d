package server

import (
	"slices"
	"strings"
	"testing"
)

func TestControllers(t *testing.T) {
	without := func(names []string, name string) []string {
		return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == name })
	}
	all := without(controllerNames, tenantRemover)
	today := []string{requestSigner, roleAggregator, garbageCollector, namespaceEmptier, quotaCounter, accountCreator, storageMigrator, crdRoller}
	for _, test := range []struct {
		flags   []string
		running []string
		err     string
	}{
		{nil, today, ""},
		{[]string{"--kinds=all"}, all, ""},
		{[]string{"--kinds=all", "--tenants"}, controllerNames, ""},
		{[]string{"--kinds=custom"}, []string{roleAggregator, garbageCollector, namespaceEmptier, quotaCounter, storageMigrator, crdRoller}, ""},
		{[]string{"--controllers="}, nil, ""},
		{[]string{"--controllers=namespace-controller"}, []string{namespaceEmptier}, ""},
		{[]string{"--controllers=*,root-ca-certificate-publisher-controller"}, without(all, serviceKeeper), ""},
		{[]string{"--controllers=-garbage-collector-controller,*"}, without(today, garbageCollector), ""},
		{[]string{"--kinds=all", "--controllers=*,-root-ca-certificate-publisher-controller"}, without(all, rootPublisher), ""},
		{[]string{"--controllers=*,-garbage"}, today, `"-garbage", which is not the name of a controller; the names are certificatesigningrequest-signing-controller, clusterrole-`},
		{[]string{"--kinds=custom", "--controllers=serviceaccount-controller"}, []string{accountCreator}, "--kinds=custom; leave it out, or set --kinds=control-plane"},
		{[]string{"--controllers=kubernetes-service-controller"}, []string{serviceKeeper}, "--kinds=control-plane; leave it out, or set --kinds=all"},
	} {
		o := parsed(t, test.flags...)
		var running []string
		for _, name := range controllerNames {
			if o.runs(name) {
				running = append(running, name)
			}
		}
		if !slices.Equal(running, test.running) {
			t.Errorf("%q: %q, want %q", test.flags, running, test.running)
		}
		var text strings.Builder
		for _, err := range o.validateControllers() {
			text.WriteString(err.Error())
		}
		if (test.err == "") != (text.Len() == 0) || !strings.Contains(text.String(), test.err) {
			t.Errorf("%q: error %q, want %q", test.flags, text.String(), test.err)
		}
	}
}
