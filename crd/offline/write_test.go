package offline

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// decoded reads an object of a kind.
func decoded(t *testing.T, k *Kind, text string) runtime.Object {
	t.Helper()
	obj, strict, err := k.Decode([]byte(text), Latest)
	if err != nil || len(strict) > 0 {
		t.Fatalf("%s: %v %v", text, strict, err)
	}
	return obj
}

// told writes the errors of an answer, and the warnings after a bar.
func told(a Answer) string {
	var list []string
	for _, e := range a.Errors {
		list = append(list, e.Error())
	}
	text := strings.Join(list, "; ")
	if len(a.Warnings) > 0 {
		text += " | " + strings.Join(a.Warnings, "; ")
	}
	return text
}

// Errors of addresses and families are the first, and the only ones of an answer.
func TestServiceAddresses(t *testing.T) {
	service := mustFind(t, "", "v1", "Service")
	const none = "may not be set for ExternalName services"
	for _, c := range []struct{ spec, want string }{
		{`"clusterIP":"10.0.0.1"`, ""},
		{`"clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1","fd00::1"],"ipFamilyPolicy":"PreferDualStack"`, ""},
		{`"clusterIP":"None"`, ""},
		{`"clusterIPs":["10.0.0.1"]`, "spec.clusterIPs: Invalid value: [\"10.0.0.1\"]: must be empty when `clusterIP` is not specified"},
		{`"clusterIP":"10.0.0.1","clusterIPs":["10.0.0.2"]`, "spec.clusterIPs: Invalid value: [\"10.0.0.2\"]: first value must match `clusterIP`"},
		{`"clusterIP":"None","clusterIPs":["None","10.0.0.2"]`, `spec.clusterIPs: Invalid value: ["None","10.0.0.2"]: 'None' must be the first and only value`},
		{`"clusterIP":"None","type":"NodePort"`, `spec.clusterIPs[0]: Invalid value: "None": may not be set to 'None' for NodePort services`},
		{`"clusterIP":"None","type":"LoadBalancer"`, `spec.clusterIPs[0]: Invalid value: "None": may not be set to 'None' for LoadBalancer services`},
		{`"clusterIP":"x"`, `spec.clusterIPs[0]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)`},
		{`"clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1","10.0.0.2","x"]`,
			`spec.clusterIPs[2]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff); spec.clusterIPs: Invalid value: ["10.0.0.1","10.0.0.2","x"]: may only hold up to 2 values`},
		{`"clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1","10.0.0.2"]`, `spec.clusterIPs: Invalid value: ["10.0.0.1","10.0.0.2"]: may specify no more than one IP for each IP family`},
		{`"clusterIP":"fd00::1","clusterIPs":["fd00::1","fd00::2"]`, `spec.clusterIPs: Invalid value: ["fd00::1","fd00::2"]: may specify no more than one IP for each IP family`},
		{`"clusterIP":"10.0.0.1","ipFamilies":["IPv6"]`, "spec.clusterIPs[0]: Invalid value: \"10.0.0.1\": expected an IPv6 value as indicated by `ipFamilies[0]`"},
		{`"clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1","fd00::1"],"ipFamilies":["IPv4"],"ipFamilyPolicy":"RequireDualStack"`, ""},
		{`"clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1","fd00::1"]`, `spec.ipFamilyPolicy: Invalid value: "SingleStack": must be 'RequireDualStack' or 'PreferDualStack' when multiple cluster IPs are specified`},
		{`"ipFamilies":["IPv4","IPv6"]`, `spec.ipFamilyPolicy: Invalid value: "SingleStack": must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified`},
		{`"ipFamilies":["IPv4","IPv6"],"clusterIP":"None"`, ""}, // without a selector, the author writes the endpoints
		{`"ipFamilies":["IPv4","IPv6"],"clusterIP":"None","selector":{"a":"b"}`, `spec.ipFamilyPolicy: Invalid value: "SingleStack": must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified`},
		{`"ipFamilies":["IPv5"]`, `spec.ipFamilies[0]: Unsupported value: "IPv5": supported values: "IPv4", "IPv6"`},
		{`"ipFamilies":["IPv4","IPv4"]`, `spec.ipFamilies[1]: Duplicate value: "IPv4"`},
		{`"ipFamilies":["IPv4","IPv6","IPv4"]`, `spec.ipFamilies[2]: Duplicate value: "IPv4"`},
		{`"ipFamilies":["IPv5","IPv5"]`, `spec.ipFamilies[0]: Unsupported value: "IPv5": supported values: "IPv4", "IPv6"; spec.ipFamilies[1]: Unsupported value: "IPv5": supported values: "IPv4", "IPv6"; spec.ipFamilies[1]: Duplicate value: "IPv5"`},
		{`"ipFamilies":["IPv5"],"clusterIP":"10.0.0.1"`, `spec.ipFamilies[0]: Unsupported value: "IPv5": supported values: "IPv4", "IPv6"`},
		{`"ipFamilies":["IPv4","IPv4"],"clusterIPs":["x"],"ipFamilyPolicy":"Any"`, "spec.clusterIPs: Invalid value: [\"x\"]: must be empty when `clusterIP` is not specified; " +
			`spec.ipFamilies[1]: Duplicate value: "IPv4"; spec.ipFamilyPolicy: Unsupported value: "Any": supported values: "PreferDualStack", "RequireDualStack", "SingleStack"; ` +
			`spec.clusterIPs[0]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)`},
		{`"clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1","fd00::1","fd00::2"]`, `spec.clusterIPs: Invalid value: ["10.0.0.1","fd00::1","fd00::2"]: may only hold up to 2 values`},
		{`"clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1","None"]`, `spec.clusterIPs[1]: Invalid value: "None": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)`},
		{`"clusterIP":"None","clusterIPs":["None","x"]`, `spec.clusterIPs: Invalid value: ["None","x"]: 'None' must be the first and only value; spec.clusterIPs[1]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)`},
		{`"ipFamilyPolicy":"Any"`, `spec.ipFamilyPolicy: Unsupported value: "Any": supported values: "PreferDualStack", "RequireDualStack", "SingleStack"`},
		{`"type":"ExternalName","externalName":"a.example"`, ""},
		{`"type":"ExternalName","externalName":"a.example","clusterIP":"10.0.0.1","ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack"`,
			"spec.clusterIPs: Forbidden: " + none + "; spec.ipFamilies: Forbidden: " + none + "; spec.ipFamilyPolicy: Forbidden: " + none},
	} {
		ports := `,"ports":[{"port":80}]`
		obj := decoded(t, service, `{"metadata":{"name":"a"},"spec":{`+c.spec+ports+`}}`)
		if got := told(service.Create(obj, "default")); got != c.want {
			t.Errorf("%s:\n%s\nexpected:\n%s", c.spec, got, c.want)
		}
	}
	obj := decoded(t, service, `{"metadata":{"name":"A"},"spec":{"clusterIP":"x"}}`)
	if answer := service.Create(obj, "default"); len(answer.Errors) != 1 {
		t.Errorf("an address, a name and no ports: %v", answer.Errors)
	}
}

// Older clients write profiles of AppArmor into annotations.
func TestAppArmorAnnotations(t *testing.T) {
	pod := mustFind(t, "", "v1", "Pod")
	const prefix = "container.apparmor.security.beta.kubernetes.io/"
	const warning = `metadata.annotations[` + prefix + `%s]: deprecated since v1.30; use the "appArmorProfile" field instead`
	for _, c := range []struct {
		name, annotation, container string
		want                        string // profiles of the containers, then warnings
	}{
		{"none", "", "", "- - |"},
		{"default", "runtime/default", "", "- RuntimeDefault | a"},
		{"unconfined", "unconfined", "", "- Unconfined | a"},
		{"local", "localhost/x", "", "- Localhost x | a"},
		{"local without a name", "localhost/", "", "- - | a"},
		{"unknown", "other", "", "- - | a"},
		{"the field has one", "unconfined", `,"securityContext":{"appArmorProfile":{"type":"RuntimeDefault"}}`, "- RuntimeDefault |"},
		{"the field has another setting", "unconfined", `,"securityContext":{"privileged":false}`, "- Unconfined | a"},
	} {
		annotations := "{}"
		if c.annotation != "" {
			annotations = `{"` + prefix + `a":"` + c.annotation + `"}`
		}
		p := decoded(t, pod, `{"metadata":{"name":"p","annotations":`+annotations+`},"spec":{"initContainers":[{"name":"i","image":"x"}],"containers":[{"name":"a","image":"x"`+c.container+`}]}}`).(*corev1.Pod)
		warnings := SyncAppArmor(p)
		got := profile(p.Spec.InitContainers[0].SecurityContext) + " " + profile(p.Spec.Containers[0].SecurityContext) + " |"
		for _, w := range warnings {
			if w != strings.Replace(warning, "%s", "a", 1) {
				t.Errorf("%s: %s", c.name, w)
			}
			got += " a"
		}
		if got != c.want {
			t.Errorf("%s: %s, expected %s", c.name, got, c.want)
		}
	}
}

func profile(s *corev1.SecurityContext) string {
	if s == nil || s.AppArmorProfile == nil {
		return "-"
	}
	text := string(s.AppArmorProfile.Type)
	if s.AppArmorProfile.LocalhostProfile != nil {
		text += " " + *s.AppArmorProfile.LocalhostProfile
	}
	return text
}

// A pod of Windows has no profiles. One with a profile for all containers needs no other
// that says the same.
func TestAppArmorOfPods(t *testing.T) {
	pod := mustFind(t, "", "v1", "Pod")
	for _, c := range []struct{ spec, want string }{
		{`"os":{"name":"windows"},`, "-"},
		{`"os":{"name":"linux"},`, "Unconfined"},
		{`"securityContext":{"appArmorProfile":{"type":"Unconfined"}},`, "-"},
		{`"securityContext":{"appArmorProfile":{"type":"RuntimeDefault"}},`, "Unconfined"},
		{`"securityContext":{},`, "Unconfined"},
	} {
		p := decoded(t, pod, `{"metadata":{"name":"p","annotations":{"container.apparmor.security.beta.kubernetes.io/i":"unconfined"}},"spec":{`+c.spec+
			`"initContainers":[{"name":"i","image":"x"}],"containers":[{"name":"a","image":"x"}]}}`).(*corev1.Pod)
		warnings := SyncAppArmor(p)
		if got := profile(p.Spec.InitContainers[0].SecurityContext); got != c.want || len(warnings) != map[string]int{"Unconfined": 1}[c.want] {
			t.Errorf("%s %s %v, expected %s", c.spec, got, warnings, c.want)
		}
	}
}

// A Job without labels gets those of its pods, also those that servers add for them.
func TestJobLabels(t *testing.T) {
	job := mustFind(t, "batch", "v1", "Job")
	const text = `{"metadata":{"name":"a"LABELS},"spec":{"template":{"metadata":{"labels":{"x":"y"}},"spec":{"restartPolicy":"Never","containers":[{"name":"a","image":"b"}]}}}}`
	without := decoded(t, job, strings.Replace(text, "LABELS", "", 1)).(*batchv1.Job)
	if answer := job.Create(without, "default"); len(answer.Errors) > 0 || len(without.Labels) < 2 || without.Labels["x"] != "y" {
		t.Errorf("%v %v", without.Labels, answer.Errors)
	}
	with := decoded(t, job, strings.Replace(text, "LABELS", `,"labels":{"own":"1"}`, 1)).(*batchv1.Job)
	if answer := job.Create(with, "default"); len(answer.Errors) > 0 || len(with.Labels) != 1 {
		t.Errorf("%v %v", with.Labels, answer.Errors)
	}
	if ShareJobLabels(with) || ShareJobLabels(&batchv1.Job{}) {
		t.Error("a Job with labels, or pods without, changes nothing")
	}
	empty := &batchv1.Job{}
	empty.Spec.Template.Labels = map[string]string{"x": "y"}
	if !ShareJobLabels(empty) || empty.Labels["x"] != "y" {
		t.Errorf("%v", empty.Labels)
	}
	CopyJobLabels(empty)
	empty.Labels["z"] = "z"
	if len(empty.Spec.Template.Labels) != 1 {
		t.Error("the labels are still shared")
	}
}

// What becomes of new objects: defaults, the generation, errors of metadata and of the
// rules, warnings.
func TestCreate(t *testing.T) {
	for _, c := range []struct{ group, kind, namespace, text, want, stored string }{
		{"", "ConfigMap", "n", `{"metadata":{"name":"a"},"data":{"k":"v"}}`, "", `"namespace":"n"`},
		{"", "ConfigMap", "n", `{"metadata":{"name":"A"},"data":{"/":"v"}}`,
			`metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*'); ` +
				`data[/]: Invalid value: "/": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')`, ""},
		{"apps", "Deployment", "n", `{"metadata":{"name":"a","generation":7},"spec":{"selector":{"matchLabels":{"a":"x"}},"template":{"metadata":{"labels":{"a":"x"}},"spec":{"containers":[{"name":"a","image":"b"}]}}}}`,
			"", `"generation":1`},
		{"apps", "Deployment", "n", `{"metadata":{"name":"a"},"spec":{"selector":{"matchLabels":{"a":"x"}},"template":{"metadata":{"labels":{"a":"x"}},"spec":{"containers":[{"name":"a","image":"b"}]}}},"status":{"replicas":3}}`,
			"", `"status":{}`},
		{"apps", "Deployment", "n", `{"metadata":{"name":"a"},"spec":{"selector":{"matchLabels":{"a":"x"}},"template":{"metadata":{"labels":{"a":"x"}},"spec":{"containers":[{"name":"a","image":"b"}]}}}}`,
			"", `"replicas":1`},
		// Objects that are refused have no warnings of their rules.
		{"networking.k8s.io", "Ingress", "n", `{"metadata":{"name":"a","annotations":{"kubernetes.io/ingress.class":"x"}},"spec":{"defaultBackend":{"service":{"name":"s","port":{"number":80}}}}}`,
			` | annotation "kubernetes.io/ingress.class" is deprecated, please use 'spec.ingressClassName' instead`, ""},
		{"networking.k8s.io", "Ingress", "n", `{"metadata":{"name":"a","annotations":{"kubernetes.io/ingress.class":"x"}},"spec":{}}`,
			"spec: Invalid value: null: either `defaultBackend` or `rules` must be specified", ""},
	} {
		k := mustFind(t, c.group, "v1", c.kind)
		obj := decoded(t, k, c.text)
		if got := told(k.Create(obj, c.namespace)); got != c.want {
			t.Errorf("%s:\n%s\nexpected:\n%s", c.text, got, c.want)
		}
		stored, err := json.Marshal(obj)
		if err != nil || !strings.Contains(string(stored), c.stored) {
			t.Errorf("%s: %s is not in %s", c.text, c.stored, stored)
		}
	}
}

func TestOffByDefault(t *testing.T) {
	for _, c := range []struct {
		group, version, kind string
		of                   Version
		want                 bool
	}{
		{"scheduling.k8s.io", "v1beta1", "PodGroup", Latest, true},
		{"scheduling.k8s.io", "v1beta1", "Other", Latest, false},
		{"scheduling.k8s.io", "v1", "PriorityClass", Latest, false},
		{"scheduling.k8s.io", "v1", "PriorityClass", Latest - 1, false},
		{"scheduling.k8s.io", "v1beta1", "Other", Latest - 1, true},
		{"scheduling.k8s.io", "v1alpha1", "Other", Latest - 1, true},
	} {
		if got := OffByDefault(schema.GroupVersionKind{Group: c.group, Version: c.version, Kind: c.kind}, c.of); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}

func TestVersions(t *testing.T) {
	if got := Versions(); !slices.Equal(got, []string{"1.37", "1.36", "1.35", "1.34", "1.33"}) {
		t.Errorf("%v", got)
	}
	_, err := ParseVersion("1.2")
	if err == nil || err.Error() != `version "1.2" of Kubernetes is not known: use 1.33 to 1.37` {
		t.Errorf("%v", err)
	}
	if !HasGroup("apps") || HasGroup("other") {
		t.Error("apps has kinds, and other has none")
	}
	if Find(schema.GroupVersionKind{Version: "v1", Kind: "Other"}) != nil {
		t.Error("there is a kind Other")
	}
	list := All()
	if !slices.IsSortedFunc(list, func(a, b *Kind) int {
		return strings.Compare(a.Group+"\x00"+a.Kind+"\x00"+a.Version, b.Group+"\x00"+b.Kind+"\x00"+b.Version)
	}) {
		t.Error("the kinds are not sorted")
	}
	if got := mustFind(t, "admissionregistration.k8s.io", "v1", "MutatingAdmissionPolicy").Since(); got != 36 {
		t.Errorf("since %s", got)
	}
	if got := mustFind(t, "", "v1", "Pod").Since(); got != Oldest {
		t.Errorf("since %s", got)
	}
	if got := mustFind(t, "", "v1", "Endpoints").Deprecated(); got == "" {
		t.Error("Endpoints is not deprecated")
	}
	if got := mustFind(t, "", "v1", "Pod").Deprecated(); got != "" {
		t.Errorf("Pod: %s", got)
	}
}
