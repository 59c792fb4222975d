package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestValidateDataOfConfigMapsAndSecrets(t *testing.T) {
	const key = "a valid config key must consist of…"
	half := strings.Repeat("x", corev1.MaxSecretSize/2)
	validateAll(t, &ConfigMap, []validationCase{
		{"nothing", "{}", nil},
		{"keys", "{data: {a: b, c d: e}, binaryData: {f g: ''}}", []string{`data[c d]: Invalid value: "c d": ` + key, `binaryData[f g]: Invalid value: "f g": ` + key}},
		{"one key twice", "{data: {a: b, c: d}, binaryData: {a: ''}}", []string{`data[a]: Invalid value: "a": duplicate of key present in binaryData`}},
		{"the largest", "{data: {a: " + half + ", b: " + half + "}}", nil},
		{"too large", "{data: {a: " + half + ", b: " + half + "x}}", []string{`[]: Too long: may not be more than 1048576 bytes`}},
		{"too large with bytes", "{data: {a: " + half + ", b: " + half + "}, binaryData: {c: aa==}}", []string{`[]: Too long: may not be more than 1048576 bytes`}},
	})
	validateAll(t, &Secret, []validationCase{
		{"nothing", "{}", nil},
		{"keys", "{stringData: {a: b, c d: e}}", []string{`data[c d]: Invalid value: "c d": ` + key}},
		{"the largest", "{stringData: {a: " + half + ", b: " + half + "}}", nil},
		{"too large", "{stringData: {a: " + half + ", b: " + half + "x}}", []string{"data: Too long: may not be more than 1048576 bytes"}},
	})
}

func TestValidateTypesOfSecrets(t *testing.T) {
	validateAll(t, &Secret, []validationCase{
		{"a token", "{type: kubernetes.io/service-account-token, metadata: {annotations: {kubernetes.io/service-account.name: a}}}", nil},
		{"a token for no account", "{type: kubernetes.io/service-account-token}", []string{"metadata.annotations[kubernetes.io/service-account.name]: Required value"}},
		{"dockercfg", `{type: kubernetes.io/dockercfg, stringData: {.dockercfg: "{}"}}`, nil},
		{"no dockercfg", `{type: kubernetes.io/dockercfg}`, []string{"data[.dockercfg]: Required value"}},
		{"dockerconfigjson", `{type: kubernetes.io/dockerconfigjson, stringData: {.dockerconfigjson: "{}"}}`, nil},
		{"dockerconfigjson that is no JSON", `{type: kubernetes.io/dockerconfigjson, stringData: {.dockerconfigjson: "[]"}}`, []string{`data[.dockerconfigjson]: Invalid value: "<secret contents redacted>": json: cannot unmarshal array…`}},
		{"a user", `{type: kubernetes.io/basic-auth, stringData: {username: a}}`, nil},
		{"a password", `{type: kubernetes.io/basic-auth, stringData: {password: a}}`, nil},
		{"neither", `{type: kubernetes.io/basic-auth}`, []string{"data[username]: Required value", "data[password]: Required value"}},
		{"a key", `{type: kubernetes.io/ssh-auth, stringData: {ssh-privatekey: a}}`, nil},
		{"an empty key", `{type: kubernetes.io/ssh-auth, stringData: {ssh-privatekey: ""}}`, []string{"data[ssh-privatekey]: Required value"}},
		{"TLS", `{type: kubernetes.io/tls, stringData: {tls.crt: "", tls.key: ""}}`, nil},
		{"TLS without a key", `{type: kubernetes.io/tls, stringData: {tls.crt: ""}}`, []string{"data[tls.key]: Required value"}},
	})
}

func TestDefaultSecrets(t *testing.T) {
	o := read(t, &Secret, `{data: {a: YQ==, b: Yg==}, stringData: {b: c}}`).(*corev1.Secret)
	if o.Type != corev1.SecretTypeOpaque || o.StringData != nil || string(o.Data["a"]) != "a" || string(o.Data["b"]) != "c" || len(o.Data) != 2 {
		t.Errorf("%+v", o)
	}
	if o := read(t, &Secret, `{type: x}`).(*corev1.Secret); o.Type != "x" || o.Data != nil {
		t.Errorf("%+v", o)
	}
}

func TestUpdatesOfImmutableObjects(t *testing.T) {
	const text = ": Forbidden: " + immutableText
	for _, c := range []struct {
		r           *Rules
		object, old string
		wrong       []string
	}{
		{&ConfigMap, "{data: {a: b}}", "{data: {a: c}}", nil},
		{&ConfigMap, "{data: {a: b}}", "{data: {a: c}, immutable: false}", nil},
		{&ConfigMap, "{data: {a: b}}", "{data: {a: b}, immutable: true}", []string{"immutable" + text}},
		{&ConfigMap, "{data: {a: b}, immutable: false}", "{data: {a: c}, immutable: true}", []string{"immutable" + text, "data" + text}},
		{&Secret, "{data: {a: YQ==}}", "{data: {a: Yg==}}", nil},
		{&Secret, "{data: {a: YQ==}}", "{data: {a: YQ==}, immutable: true}", []string{"immutable" + text}},
		{&Secret, "{data: {a: YQ==}, immutable: true}", "{data: {a: Yg==}, immutable: true}", []string{"data" + text}},
		{&Secret, "{type: a}", "{type: b}", []string{`type: Invalid value: "a": field is immutable`}},
	} {
		t.Run(c.r.Kind+" "+c.object, func(t *testing.T) {
			complain(t, c.r.Validate(read(t, c.r, c.object), read(t, c.r, c.old)), c.wrong...)
		})
	}
}

func TestWarningsOfSecretsAndAccounts(t *testing.T) {
	for _, c := range []struct {
		r      *Rules
		object string
		warns  string // the beginning; empty if there is no warning
	}{
		{&Secret, "{}", ""}, {&Secret, "{type: kubernetes.io/tls}", "tls: failed to find any PEM data"},
		{&ServiceAccount, "{metadata: {annotations: {a: b}}}", ""},
		{&ServiceAccount, "{metadata: {annotations: {kubernetes.io/enforce-mountable-secrets: ''}}}", "metadata.annotations[kubernetes.io/enforce-mountable-secrets]: deprecated in v1.32+"},
	} {
		got := c.r.Warn(read(t, c.r, c.object))
		if len(got) > 1 || (len(got) == 1) != (c.warns != "") || len(got) == 1 && !strings.HasPrefix(got[0], c.warns) {
			t.Errorf("%s %s: %q", c.r.Kind, c.object, got)
		}
	}
}

func TestAccountsKeepNamesOfSecrets(t *testing.T) {
	o := read(t, &ServiceAccount, "{secrets: [{name: a, namespace: b}, {name: c, kind: D}]}").(*corev1.ServiceAccount)
	ServiceAccount.Prepare(o, nil)
	if !slices.Equal(o.Secrets, []corev1.ObjectReference{{Name: "a"}, {Name: "c"}}) {
		t.Errorf("%+v", o.Secrets)
	}
}

func TestLeases(t *testing.T) {
	validateAll(t, &Lease, []validationCase{
		{"nothing", "{}", nil},
		{"the least", "{spec: {leaseDurationSeconds: 1, leaseTransitions: 0}}", nil},
		{"less", "{spec: {leaseDurationSeconds: 0, leaseTransitions: -1}}", []string{
			"spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0", "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
		}},
	})
}

func TestNamespaces(t *testing.T) {
	o := read(t, &Namespace, "{metadata: {name: a, labels: {b: c}}, spec: {finalizers: [x.y/z]}, status: {phase: Terminating}}").(*corev1.Namespace)
	before := o.DeepCopy()
	if o.Status.Phase != corev1.NamespaceTerminating || !maps.Equal(o.Labels, map[string]string{"b": "c", corev1.LabelMetadataName: "a"}) {
		t.Errorf("defaults: %+v", o)
	}
	o.Labels = nil
	Namespace.Prepare(o, nil)
	if o.Status.Phase != corev1.NamespaceActive || !slices.Equal(o.Spec.Finalizers, []corev1.FinalizerName{"x.y/z", corev1.FinalizerKubernetes}) || o.Labels[corev1.LabelMetadataName] != "a" {
		t.Errorf("a new namespace: %+v", o)
	}
	Namespace.Prepare(o, nil)
	if len(o.Spec.Finalizers) != 2 {
		t.Errorf("the finalizer is there twice: %v", o.Spec.Finalizers)
	}
	o.Labels = nil
	Namespace.Prepare(o, before)
	if o.Status.Phase != corev1.NamespaceTerminating || len(o.Spec.Finalizers) != 1 || o.Labels[corev1.LabelMetadataName] != "a" {
		t.Errorf("a changed namespace: %+v", o)
	}
	if unnamed := read(t, &Namespace, "{metadata: {generateName: a}}").(*corev1.Namespace); unnamed.Labels != nil || unnamed.Status.Phase != corev1.NamespaceActive {
		t.Errorf("one without a name: %+v", unnamed)
	}
	complain(t, Namespace.Validate(before, nil))
	before.Spec.Finalizers = []corev1.FinalizerName{"a b", "kubernetes", "c"}
	complain(t, Namespace.Validate(before, nil), `spec.finalizers: Invalid value: "a b": name part…`, `spec.finalizers: Invalid value: "a b": name is neither…`, `spec.finalizers: Invalid value: "c": name is neither…`)
	complain(t, Namespace.Validate(before, before))
}

// The status of a namespace says whether it is being deleted.
func TestStatusOfNamespaces(t *testing.T) {
	now := metav1.Now()
	for _, c := range []struct {
		deleted *metav1.Time
		phase   corev1.NamespacePhase
		wrong   string
	}{
		{nil, corev1.NamespaceActive, ""}, {&now, corev1.NamespaceTerminating, ""},
		{nil, corev1.NamespaceTerminating, "status.Phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty"},
		{&now, corev1.NamespaceActive, "status.Phase: Invalid value: \"Active\": may only be 'Terminating' if `deletionTimestamp` is not empty"},
	} {
		o := &corev1.Namespace{Status: corev1.NamespaceStatus{Phase: c.phase}}
		o.DeletionTimestamp = c.deleted
		complain(t, Namespace.Status.Validate(o, nil), slices.DeleteFunc([]string{c.wrong}, func(s string) bool { return s == "" })...)
	}
	o, old := read(t, &Namespace, "{metadata: {labels: {a: b}, annotations: {c: d}}}").(*corev1.Namespace), read(t, &Namespace, "{metadata: {labels: {e: f}}, spec: {finalizers: [g]}}").(*corev1.Namespace)
	Namespace.Status.Prepare(o, old)
	if len(o.Spec.Finalizers) != 1 || o.Labels["e"] != "f" || o.Annotations["c"] != "d" {
		t.Errorf("%+v", o)
	}
}

func TestValidateQuotas(t *testing.T) {
	const at, scopes, selector = "spec.hard", "spec.scopes", "spec.scopeSelector.matchExpressions"
	const unsupported = `: unsupported scope applied to resource`
	var all []string
	for _, name := range slices.Concat(quotaCounts.UnsortedList(), quotaCompute.UnsortedList(), quotaOther.UnsortedList()) {
		all = append(all, string(name)+": 2")
	}
	cases := []validationCase{
		{"nothing", "{}", nil},
		{"all names", "{spec: {hard: {" + strings.Join(all, ", ") + ", hugepages-1Mi: 1.5, requests.hugepages-1Mi: 1.5, count/jobs.batch: 1, a.b/c: 1, requests.a.b/c: 1.5, kubernetes.io/x: 1.5}}}", nil},
		{"fractions", "{spec: {hard: {pods: 1.5, cpu: 1.5, a.b/c: 1.5}}}", []string{at + `[pods]: Invalid value: "1500m": must be an integer`, at + `[a.b/c]: Invalid value: "1500m": must be an integer`}},
		{"zero and less", "{spec: {hard: {cpu: 0, memory: -1}}}", []string{at + `[memory]: Invalid value: "-1": must be greater than or equal to 0`}},
		{"other names", "{spec: {hard: {x: 1, storage: 1, a b: 1}}}", []string{
			at + `[x]: Invalid value: "x": must be a standard resource type or fully qualified`, at + `[x]: Invalid value: "x": must be a standard resource for quota`,
			at + `[storage]: Invalid value: "storage": must be a standard resource for quota`,
			at + `[a b]: Invalid value: "a b": name part…`, at + `[a b]: Invalid value: "a b": must be a standard resource for quota`,
		}},
		{"scopes", "{spec: {hard: {pods: 1, cpu: 1, a.b/c: 1}, scopes: [Terminating, NotBestEffort]}}", nil},
		{"one that is none", "{spec: {hard: {pods: 1}, scopes: [X]}}", []string{scopes + `: Invalid value: ["X"]: unsupported scope`}},
		{"of something else", "{spec: {hard: {services: 1, requests.cpu: 1, pods: 1}, scopes: [Terminating]}}", []string{scopes + `: Invalid value: ["Terminating"]` + unsupported}},
		{"of pods", "{spec: {hard: {cpu: 1, pods: 1}, scopes: [BestEffort]}}", []string{scopes + `: Invalid value: ["BestEffort"]` + unsupported}},
		{"of volumes", "{spec: {hard: {persistentvolumeclaims: 1, requests.storage: 1, pods: 1}, scopes: [VolumeAttributesClass]}}", []string{scopes + `: Invalid value: ["VolumeAttributesClass"]` + unsupported}},
		{"that conflict", "{spec: {scopes: [BestEffort, NotBestEffort, Terminating, NotTerminating]}}", slices.Repeat([]string{scopes + `: Invalid value: ["BestEffort","NotBestEffort","Terminating","NotTerminating"]: conflicting scopes`}, 2)},
		{"selectors", "{spec: {hard: {pods: 1}, scopeSelector: {matchExpressions: [{scopeName: BestEffort, operator: Exists}, {scopeName: PriorityClass, operator: In, values: [a]}, {scopeName: PriorityClass, operator: NotIn, values: [a]}, {scopeName: PriorityClass, operator: DoesNotExist}]}}}", nil},
		{"selectors without values", "{spec: {scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In}, {scopeName: PriorityClass, operator: NotIn}]}}}", slices.Repeat([]string{selector + ".values: Required value: must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"}, 2)},
		{"selectors with values", "{spec: {scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: Exists, values: [a]}, {scopeName: PriorityClass, operator: DoesNotExist, values: [a]}]}}}", slices.Repeat([]string{selector + ".values: Invalid value: [\"a\"]: must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"}, 2)},
		{"another operator", "{spec: {scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: X}, {scopeName: Terminating, operator: In, values: [a]}]}}}", []string{
			selector + `.operator: Invalid value: "X": not a valid selector operator`, selector + `.operator: Invalid value: "In": must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity`,
		}},
		{"other selectors", "{spec: {hard: {services: 1}, scopeSelector: {matchExpressions: [{scopeName: X, operator: Exists}, {scopeName: PriorityClass, operator: Exists}]}}}", []string{
			selector + `.scopeName: Invalid value: "X": unsupported scope`,
			selector + `: Invalid value: {"MatchExpressions":[{"ScopeName":"X","Operator":"Exists","Values":null},{"ScopeName":"PriorityClass","Operator":"Exists","Values":null}]}: unsupported scope applied to resource`,
		}},
		{"selectors that conflict", "{spec: {scopeSelector: {matchExpressions: [{scopeName: Terminating, operator: Exists}, {scopeName: NotTerminating, operator: Exists}]}}}", []string{selector + `: Invalid value: null: conflicting scopes`}},
	}
	for _, scope := range []string{"BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "CrossNamespacePodAffinity"} {
		cases = append(cases, validationCase{scope, "{spec: {scopeSelector: {matchExpressions: [{scopeName: " + scope + ", operator: DoesNotExist}]}}}", []string{selector + `.operator: Invalid value: "DoesNotExist": must be 'Exists' when scope is any of…`}})
	}
	validateAll(t, &ResourceQuota, cases)
}

func TestUpdatesOfQuotas(t *testing.T) {
	old := read(t, &ResourceQuota, "{spec: {scopes: [Terminating, BestEffort]}, status: {hard: {pods: 1}}}").(*corev1.ResourceQuota)
	complain(t, ResourceQuota.Validate(read(t, &ResourceQuota, "{spec: {scopes: [BestEffort, Terminating]}}"), old))
	complain(t, ResourceQuota.Validate(read(t, &ResourceQuota, "{spec: {scopes: [BestEffort]}}"), old), `spec.scopes: Invalid value: ["BestEffort"]: field is immutable`)
	o := read(t, &ResourceQuota, "{spec: {hard: {cpu: 0.0001}}, status: {hard: {cpu: 0.0001}, used: {cpu: 0.0001, x: 1}}}").(*corev1.ResourceQuota)
	for _, list := range []corev1.ResourceList{o.Spec.Hard, o.Status.Hard, o.Status.Used} {
		if q := list["cpu"]; q.String() != "1m" {
			t.Errorf("a tenth of a thousandth is %s", q.String())
		}
	}
	complain(t, ResourceQuota.Status.Validate(o, nil), `status.used[x]: Invalid value: "x": must be a standard resource type or fully qualified`, `status.used[x]: Invalid value: "x": must be a standard resource for quota`)
	o.Labels = map[string]string{"a": "b"}
	ResourceQuota.Status.Prepare(o, old)
	if len(o.Spec.Scopes) != 2 || o.Labels != nil || len(o.Status.Used) != 2 {
		t.Errorf("a status: %+v", o)
	}
	ResourceQuota.Prepare(o, old)
	if len(o.Status.Used) != 0 || len(o.Status.Hard) != 1 {
		t.Errorf("an update: %+v", o)
	}
	ResourceQuota.Prepare(o, nil)
	if o.Status.Hard != nil {
		t.Errorf("a new quota: %+v", o)
	}
}

func TestWarningsOfQuotas(t *testing.T) {
	for hard, want := range map[string][]string{
		"": nil, "cpu: 2, limits.cpu: 2": nil, "cpu: 2": nil, "limits.cpu: 2": nil, "storage: 2, limits.storage: 1": nil,
		"cpu: 2, limits.cpu: 1":                                      {"ResourceQuota cpu (2) should be less than limits.cpu (1)"},
		"cpu: 1, requests.cpu: 2, limits.cpu: 1":                     {"ResourceQuota requests.cpu (2) should be less than limits.cpu (1)"},
		"memory: 2, limits.memory: 1":                                {"ResourceQuota memory (2) should be less than limits.memory (1)"},
		"requests.storage: 2, limits.storage: 1":                     {"ResourceQuota requests.storage (2) should be less than limits.storage (1)"},
		"requests.ephemeral-storage: 2, limits.ephemeral-storage: 1": {"ResourceQuota requests.ephemeral-storage (2) should be less than limits.ephemeral-storage (1)"},
	} {
		if got := ResourceQuota.Warn(read(t, &ResourceQuota, fmt.Sprintf("{spec: {hard: {%s}}}", hard))); !slices.Equal(got, want) {
			t.Errorf("%s: %q", hard, got)
		}
	}
}
