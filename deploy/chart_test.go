package deploy

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"
)

// values are what is given with `helm install --set`.
type values = map[string]any

// everything switches on what is off by default.
var everything = values{
	"encryption":     values{"secretName": "espalier-encryption"},
	"authentication": values{"config": "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n"},
	"tokens":         values{"acceptedKeys": []any{"next.key", "former.key"}},
	"image":          values{"digest": "sha256:" + strings.Repeat("0", 64), "pullSecrets": []any{values{"name": "pull"}}},
	"service":        values{"annotations": values{"a": "b"}},
	"flags":          values{"profiling": true, "max-requests-inflight": 800, "feature-gates": []any{"WatchList=true", "AllAlpha=false"}},
	"podAnnotations": values{"a": "b"}, "podLabels": values{"a": "b"}, "nodeSelector": values{"a": "b"},
	"tolerations": []any{values{"key": "a", "operator": "Exists"}}, "priorityClassName": "high",
	"monitoring": values{
		"serviceMonitor": values{"enabled": true, "labels": values{"release": "prometheus"}},
		"rules":          values{"enabled": true, "labels": values{"release": "prometheus"}},
		"dashboard":      values{"enabled": true},
	},
}

// render is `helm template NAME --namespace espalier`: the templates by name.
func render(release string, given values) (map[string]string, error) {
	chart, err := loader.LoadDir(chartDir)
	if err != nil {
		return nil, err
	}
	all, err := util.ToRenderValues(chart, given, common.ReleaseOptions{Name: release, Namespace: "espalier", Revision: 1, IsInstall: true}, nil)
	if err != nil {
		return nil, err
	}
	return engine.Engine{Strict: true}.RenderWithContext(context.Background(), chart, all)
}

// order is that in which the parts of the manifest come: what others need first.
var order = []string{"serviceaccount", "configmap", "service", "poddisruptionbudget", "deployment", "servicemonitor", "prometheusrule", "dashboard"}

// manifest puts what is rendered into one text.
func manifest(t *testing.T, release string, given values) string {
	t.Helper()
	files, err := render(release, given)
	if err != nil {
		t.Fatal(err)
	}
	var parts []string
	for _, name := range order {
		path := "espalier/templates/" + name + ".yaml"
		if text := strings.TrimSpace(files[path]); text != "" {
			parts = append(parts, text+"\n")
		}
		delete(files, path)
	}
	delete(files, "espalier/templates/NOTES.txt")
	delete(files, "espalier/templates/_names.tpl")
	if len(files) != 0 {
		t.Fatalf("templates without a place in the manifest: %v", slices.Sorted(maps.Keys(files)))
	}
	return strings.Join(parts, "---\n")
}

// There is one source: the manifests are the chart with its defaults.
func TestManifestsAreTheChart(t *testing.T) {
	header := "# Made from deploy/helm/espalier with its defaults, by `go test -run TestManifestsAreTheChart -write` in deploy/.\n" +
		"# Change the image, the servers of etcd and the issuer; deploy/README.md lists the secrets that it needs.\n"
	same(t, manifestFile, []byte(header+manifest(t, "espalier", nil)))
}

// objects decodes a manifest as strictly as the API server does with fieldValidation=Strict.
func objects(t *testing.T, text string) []runtime.Object {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, policyv1.AddToScheme, monitoringv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	decoder := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Yaml: true, Strict: true})
	var found []runtime.Object
	for i, doc := range strings.Split(text, "\n---\n") {
		obj, _, err := decoder.Decode([]byte(doc+"\n"), nil, nil)
		if err != nil {
			t.Fatalf("object %d: %v\n%s", i, err, doc)
		}
		found = append(found, obj)
	}
	return found
}

// one returns the only object of a type.
func one[T runtime.Object](t *testing.T, all []runtime.Object) T {
	t.Helper()
	var found []T
	for _, o := range all {
		if o, ok := o.(T); ok {
			found = append(found, o)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d objects of the type %T, not one", len(found), *new(T))
	}
	return found[0]
}

func TestManifestsDecode(t *testing.T) {
	kinds := func(all []runtime.Object) string {
		var names []string
		for _, o := range all {
			names = append(names, o.GetObjectKind().GroupVersionKind().Kind)
		}
		return strings.Join(names, " ")
	}
	const always = "ServiceAccount ConfigMap Service PodDisruptionBudget Deployment"
	if got := kinds(objects(t, string(read(t, manifestFile)))); got != always {
		t.Errorf("manifests: %s, want %s", got, always)
	}
	if got, want := kinds(objects(t, manifest(t, "espalier", everything))), always+" ServiceMonitor PrometheusRule ConfigMap"; got != want {
		t.Errorf("with everything on: %s, want %s", got, want)
	}
	if got := kinds(objects(t, manifest(t, "espalier", values{"audit": values{"policy": ""}}))); strings.Contains(got, "ConfigMap") {
		t.Errorf("without audit: %s; there is nothing to configure", got)
	}
	namespace := one[*corev1.Namespace](t, objects(t, string(read(t, "kubernetes/namespace.yaml"))))
	for _, o := range objects(t, string(read(t, manifestFile))) {
		if meta := o.(metav1.Object); meta.GetNamespace() != namespace.Name {
			t.Errorf("%s %s is in the namespace %q", o.GetObjectKind().GroupVersionKind().Kind, meta.GetName(), meta.GetNamespace())
		}
	}
}

// Two releases in a namespace do not touch each other's objects.
func TestReleasesAreApart(t *testing.T) {
	seen := map[string]string{}
	for _, release := range []string{"one", "two"} {
		for _, o := range objects(t, manifest(t, release, everything)) {
			key := o.GetObjectKind().GroupVersionKind().Kind + " " + o.(metav1.Object).GetName()
			if other, ok := seen[key]; ok && other != release {
				t.Errorf("%s is in %s and in %s", key, other, release)
			}
			seen[key] = release
		}
	}
}

func deployment(t *testing.T, given values) *appsv1.Deployment {
	t.Helper()
	return one[*appsv1.Deployment](t, objects(t, manifest(t, "espalier", given)))
}

// Kubernetes' own evaluator says that the pod meets the standard that namespace.yaml enforces.
func TestPodIsRestricted(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	for name, given := range map[string]values{"defaults": nil, "everything": everything} {
		pod := deployment(t, given).Spec.Template
		for _, result := range evaluator.EvaluatePod(level, &pod.ObjectMeta, &pod.Spec) {
			if !result.Allowed {
				t.Errorf("%s: %s: %s", name, result.ForbiddenReason, result.ForbiddenDetail)
			}
		}
		c := pod.Spec.Containers[0]
		if s := c.SecurityContext; s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem {
			t.Errorf("%s: the root file system can be written to", name)
		}
		if id := pod.Spec.SecurityContext.RunAsUser; id == nil || *id == 0 {
			t.Errorf("%s: the user is no number other than 0", name)
		}
		if token := pod.Spec.AutomountServiceAccountToken; token == nil || *token {
			t.Errorf("%s: the pod has a token that it does not need", name)
		}
		for _, m := range c.VolumeMounts {
			if !m.ReadOnly {
				t.Errorf("%s: %s can be written to", name, m.MountPath)
			}
		}
		for _, v := range pod.Spec.Volumes {
			if v.Secret != nil && (v.Secret.DefaultMode == nil || *v.Secret.DefaultMode != 0o440) {
				t.Errorf("%s: the files of %s are not for the group alone: %v", name, v.Name, v.Secret.DefaultMode)
			}
		}
		if c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() {
			t.Errorf("%s: resources are not said: %v", name, c.Resources)
		}
	}
}

// argument returns the value of a flag among arguments.
func argument(t *testing.T, args []string, flag string) string {
	t.Helper()
	for _, a := range args {
		if value, ok := strings.CutPrefix(a, "--"+flag+"="); ok {
			return value
		}
	}
	t.Fatalf("no --%s in %q", flag, args)
	return ""
}

// stopping is how long a server with these arguments may take to end.
func stopping(t *testing.T, args []string) time.Duration {
	t.Helper()
	var total time.Duration
	for _, flag := range []string{"shutdown-delay-duration", "shutdown-watch-termination-grace-period", "request-timeout"} {
		d, err := time.ParseDuration(argument(t, args, flag))
		if err != nil {
			t.Fatal(err)
		}
		total += d
	}
	return total
}

func TestReplicasComeAndGo(t *testing.T) {
	all := objects(t, string(read(t, manifestFile)))
	d, budget, service := one[*appsv1.Deployment](t, all), one[*policyv1.PodDisruptionBudget](t, all), one[*corev1.Service](t, all)
	pod := d.Spec.Template
	if *d.Spec.Replicas < 2 {
		t.Errorf("%d replicas: every restart is an outage", *d.Spec.Replicas)
	}
	if u := d.Spec.Strategy.RollingUpdate; u.MaxUnavailable.IntValue() != 0 || u.MaxSurge.IntValue() < 1 {
		t.Errorf("a rolling update takes replicas away first: %v", u)
	}
	if budget.Spec.MaxUnavailable.IntValue() >= int(*d.Spec.Replicas) {
		t.Errorf("the budget %v lets all %d replicas go", budget.Spec.MaxUnavailable, *d.Spec.Replicas)
	}
	for name, selector := range map[string]map[string]string{
		"deployment": d.Spec.Selector.MatchLabels, "budget": budget.Spec.Selector.MatchLabels, "service": service.Spec.Selector,
		"spread by machine": pod.Spec.TopologySpreadConstraints[0].LabelSelector.MatchLabels,
		"spread by zone":    pod.Spec.TopologySpreadConstraints[1].LabelSelector.MatchLabels,
	} {
		for k, v := range selector {
			if pod.Labels[k] != v {
				t.Errorf("the selector of the %s does not match the pods: %s=%s", name, k, v)
			}
		}
	}
	for _, given := range []values{nil, {"shutdown": values{"delaySeconds": 70}}, {"requestTimeoutSeconds": 300}} {
		d := deployment(t, given)
		grace := time.Duration(*d.Spec.Template.Spec.TerminationGracePeriodSeconds) * time.Second
		if need := stopping(t, d.Spec.Template.Spec.Containers[0].Args) + 5*time.Second; grace < need {
			t.Errorf("%v: killed after %v, but it may take %v to end", given, grace, need)
		}
	}
	c := pod.Spec.Containers[0]
	for path, probe := range map[string]*corev1.Probe{"/livez": c.LivenessProbe, "/readyz": c.ReadinessProbe} {
		if get := probe.HTTPGet; get.Path != path || get.Scheme != corev1.URISchemeHTTPS || get.Port.String() != c.Ports[0].Name {
			t.Errorf("%s is not asked over HTTPS: %v", path, probe)
		}
	}
	if delay, err := time.ParseDuration(argument(t, c.Args, "shutdown-delay-duration")); err != nil ||
		delay < time.Duration(c.ReadinessProbe.PeriodSeconds*c.ReadinessProbe.FailureThreshold)*time.Second {
		t.Errorf("a server stops serving after %v (%v), before its readiness probe has failed", delay, err)
	}
	if port := fmt.Sprint(c.Ports[0].ContainerPort); port != argument(t, c.Args, "secure-port") {
		t.Errorf("the server listens elsewhere than at %s", port)
	}
	if service.Spec.Ports[0].TargetPort.String() != c.Ports[0].Name {
		t.Errorf("the service leads to %v", service.Spec.Ports[0])
	}
}

// A new audit policy makes new pods, because it is read at the start only.
func TestConfigMakesNewPods(t *testing.T) {
	a, b := deployment(t, nil), deployment(t, values{"audit": values{"policy": "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None}]\n"}})
	if hash := "espalier.dev/config"; a.Spec.Template.Annotations[hash] == b.Spec.Template.Annotations[hash] {
		t.Error("the pods do not change with the policy")
	}
}

// The rules of the operator are those of the file, and so are those of the dashboard.
func TestMonitoringIsInTheChart(t *testing.T) {
	all := objects(t, manifest(t, "espalier", everything))
	rule := one[*monitoringv1.PrometheusRule](t, all)
	var want monitoringv1.PrometheusRuleSpec
	if err := yaml.UnmarshalStrict(read(t, rulesFile), &want); err != nil {
		t.Fatal(err)
	}
	a, _ := yaml.Marshal(rule.Spec)
	b, _ := yaml.Marshal(want)
	if !bytes.Equal(a, b) || len(want.Groups) == 0 {
		t.Error("the PrometheusRule has other rules than the file")
	}
	for _, o := range all {
		if c, ok := o.(*corev1.ConfigMap); ok && strings.HasSuffix(c.Name, "-dashboard") && c.Data["espalier.json"] != string(read(t, dashboardFile)) {
			t.Error("the dashboard in the chart is another")
		}
	}
	monitor, service := one[*monitoringv1.ServiceMonitor](t, all), one[*corev1.Service](t, all)
	if e := monitor.Spec.Endpoints[0]; e.Port != service.Spec.Ports[0].Name || service.Labels[monitor.Spec.JobLabel] != "espalier" {
		t.Errorf("the monitor does not find the service, or calls the job otherwise: %v", monitor.Spec)
	}
	for k, v := range monitor.Spec.Selector.MatchLabels {
		if service.Labels[k] != v {
			t.Errorf("the service has no label %s=%s", k, v)
		}
	}
}

// `helm lint` has nothing to say but that there is no icon.
func TestChartLints(t *testing.T) {
	for name, given := range map[string]values{"defaults": {}, "everything": everything} {
		for _, m := range lint.RunAll(chartDir, given, "espalier").Messages {
			if m.Severity > support.InfoSev || !strings.Contains(m.Error(), "icon is recommended") {
				t.Errorf("%s: %v", name, m)
			}
		}
	}
}

func TestNotesNameWhatMustBeThere(t *testing.T) {
	files, err := render("espalier", everything)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"espalier-tls", "espalier-client-ca", "espalier-etcd-client", "espalier-tokens: signing.key, next.key, former.key", "espalier-encryption"} {
		if !strings.Contains(files["espalier/templates/NOTES.txt"], want) {
			t.Errorf("the notes do not say %s:\n%s", want, files["espalier/templates/NOTES.txt"])
		}
	}
}

// The schema knows every value: what it does not know is a spelling mistake.
func TestSchemaRefuses(t *testing.T) {
	if _, err := render("espalier", everything); err != nil {
		t.Fatal("what is right is refused: ", err)
	}
	for want, given := range map[string]values{
		"replicaCount":          {"replicaCount": 3},
		"replicas":              {"replicas": 0},
		"got string":            {"replicas": "two"},
		"servers/0":             {"etcd": values{"servers": []any{"http://etcd:2379"}}}, // without TLS
		"servers":               {"etcd": values{"servers": []any{}}},
		"secretName":            {"tls": values{"secretName": ""}},
		"signingKey":            {"tokens": values{"signingKey": "../etcd/tls.key"}},
		"issuer":                {"tokens": values{"issuer": "http://plain"}},
		"tag":                   {"image": values{"tag": "latest"}},
		"digest":                {"image": values{"digest": "sha256:123"}},
		"repository":            {"image": values{"repository": "espalier:1"}},
		"etcd-servers":          {"flags": values{"etcd-servers": "http://elsewhere"}}, // another value sets it
		"token-auth-file":       {"flags": values{"token-auth-file": "tokens.csv"}},    // not for production
		"--profiling":           {"flags": values{"--profiling": true}},
		"profiling":             {"flags": values{"profiling": values{"a": "b"}}},
		"pullPolicy":            {"image": values{"pullPolicy": "Sometimes"}},
		"type":                  {"service": values{"type": "ExternalName"}},
		"port":                  {"service": values{"port": 65536}},
		"maxUnavailable":        {"podDisruptionBudget": values{"maxUnavailable": 0}}, // no node could ever be drained
		"goMemoryLimit":         {"goMemoryLimit": "2Gi"},                             // Kubernetes' spelling, not Go's
		"delaySeconds":          {"shutdown": values{"delaySeconds": "15s"}},
		"interval":              {"monitoring": values{"serviceMonitor": values{"interval": "often"}}},
		"requestTimeoutSeconds": {"requestTimeoutSeconds": 1},
	} {
		_, err := render("espalier", given)
		if err == nil {
			t.Errorf("%v is accepted", given)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%v is refused without naming %s: %v", given, want, err)
		}
	}
}

// Every value of the file is described by the schema, and every default by the file.
func TestValuesAndSchemaAgree(t *testing.T) {
	chart, err := loader.LoadDir(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	var schema values
	if err := yaml.Unmarshal(chart.Schema, &schema); err != nil {
		t.Fatal(err)
	}
	compareKeys(t, "", chart.Values, schema)
}

func compareKeys(t *testing.T, path string, defaults, schema values) {
	properties, _ := schema["properties"].(values)
	for name, property := range properties {
		value, ok := defaults[name]
		// Some parts of a value are Kubernetes' to describe, and Helm hands global down by itself.
		if !ok && path+name != "global" && path != "resources." {
			t.Errorf("values.yaml has no default for %s%s", path, name)
		}
		if inner, ok := value.(values); ok {
			compareKeys(t, path+name+".", inner, property.(values))
		}
	}
}
