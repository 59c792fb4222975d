package kinds

import (
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestAnswers validates objects that kube-apiserver v1.37.1 was asked about. Each has the
// texts of all errors.
func TestAnswers(t *testing.T) {
	const (
		subdomain = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an " +
			"alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
		pod      = "metadata: {name: p}\nspec: {containers: [{name: c, image: i, volumeMounts: [{name: v, mountPath: /v}]}], volumes: [{name: v, "
		scaler   = "metadata: {name: h}\nspec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: d}, metrics: ["
		bundle   = "spec: {trustBundle: \"\", signerName: x.y/z}\nmetadata: "
		empty    = `spec.trustBundle: Invalid value: "<value omitted>": at least one trust anchor must be provided`
		workload = "metadata: {name: w}\nspec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {subdomain: a.b, containers: [{name: c, image: i}]}}}"
		prefix   = "ClusterTrustBundle for signerName x.y/z must be named with prefix x.y:z:"
	)
	for _, test := range []struct {
		group, plural, object, old string
		want                       []string
	}{
		{"", "pods", pod + "projected: {sources: [{secret: {name: s}}, {serviceAccountToken: {path: x}}]}}]}", "", []string{
			"spec.volumes[0].projected.sources[1].serviceAccountToken: Forbidden: must not be specified when serviceAccountName is not set",
		}},
		{"", "pods", pod + "projected: {sources: [{serviceAccountToken: {path: x}}]}}], serviceAccountName: a}", "", nil},
		{"", "pods", pod + "persistentVolumeClaim: {}}]}", "", []string{
			"spec.volumes[0].persistentVolumeClaim.claimName: Required value", `spec.containers[0].volumeMounts[0].name: Not found: "v"`,
		}},
		{"", "pods", pod + "emptyDir: {}}, {name: w, persistentVolumeClaim: {}}]}", "", []string{"spec.volumes[1].persistentVolumeClaim.claimName: Required value"}},
		{"", "pods", pod + "projected: {sources: [{serviceAccountToken: {path: x}}, {serviceAccountToken: {path: x}}, {configMap: {name: m, items: [{key: a, path: x}]}}]}}], serviceAccountName: a}", "", nil},
		{"", "pods", pod + "projected: {sources: [{secret: {name: s, items: [{key: a, path: x}]}}, {configMap: {name: m, items: [{key: a, path: x}, {key: b, path: x}]}}]}}]}", "", []string{
			`spec.volumes[0].projected: Invalid value: "m": conflicting duplicate paths`, `spec.volumes[0].projected: Invalid value: "m": conflicting duplicate paths`,
			`spec.containers[0].volumeMounts[0].name: Not found: "v"`,
		}},
		{"apps", "statefulsets", workload, "", nil},
		{"apps", "deployments", workload, "", []string{`spec.template.spec.subdomain: Invalid value: "a.b": must not contain dots`}},
		{"", "pods", pod + "ephemeral: {volumeClaimTemplate: {metadata: {selfLink: x, uid: x}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1}}}}}}]}", "", []string{
			"spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.selfLink: Forbidden: cannot be set", "spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.uID: Forbidden: cannot be set",
			`spec.containers[0].volumeMounts[0].name: Not found: "v"`,
		}},
		{"", "nodes", "status: {capacity: {a/b/c: 1m}, allocatable: {x.y/z: 1m}}", "", []string{`status.allocatable.x.y/z: Invalid value: "1m": must be an integer`}},
		{"autoscaling", "horizontalpodautoscalers", scaler + "{type: ContainerResource, containerResource: {name: nodots, container: c, target: {type: Utilization, averageUtilization: 5}}}]}", "", []string{
			`spec.metrics[0].containerResource.name: Invalid value: "nodots": must be a standard resource type or fully qualified`,
			`spec.metrics[0].containerResource.name: Invalid value: "nodots": must be a standard resource for containers`,
		}},
		{"autoscaling", "horizontalpodautoscalers", scaler + "{type: Pods, resource: {}, pods: {metric: {name: m}, target: {type: AverageValue, averageValue: 1}}}]}", "", []string{
			"spec.metrics[0].resource: Forbidden: must populate the given metric source only",
		}},
		{"networking.k8s.io", "ingresses", "spec: {rules: [{http: {paths: [{path: /, backend: {}}]}}]}", "", []string{
			"spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified",
		}},
		{"resource.k8s.io", "resourceclaims", "spec: {devices: {requests: [{name: .}]}}", "spec: {devices: {requests: [{name: a, exactly: {deviceClassName: c}}]}}", []string{
			"spec: Invalid value: null: field is immutable",
		}},
		{"certificates.k8s.io", "clustertrustbundles", bundle + "{generateName: abc-, name: abc-d}", "", []string{
			empty, `metadata.generateName: Invalid value: "abc-": ` + prefix, `metadata.name: Invalid value: "abc-d": ` + prefix,
		}},
		{"certificates.k8s.io", "clustertrustbundles", bundle + "{generateName: 'x.y:z:b-', name: 'x.y:z:..'}", "", []string{
			empty, `metadata.name: Invalid value: "x.y:z:..": ` + subdomain,
		}},
		{"resource.k8s.io", "resourceclaims", "spec: {devices: {requests: [{name: a, exactly: {}, firstAvailable: [{name: .}]}]}}", "", []string{
			"spec.devices.requests[0]: Invalid value: null: exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set",
		}},
		{"node.k8s.io", "runtimeclasses", "handler: h\nscheduling: {tolerations: [{key: a, operator: Exists}, {key: a, operator: Exists, tolerationSeconds: 1}]}", "", []string{
			`scheduling.tolerations[1]: Duplicate value: {"key":"a","operator":"Exists"}`,
			"scheduling.tolerations[1].effect: Invalid value: \"\": effect must be 'NoExecute' when `tolerationSeconds` is set",
		}},
		{"apps", "controllerrevisions", "data: {}", "data: {a: {}}", []string{"data: Invalid value: {}: field is immutable"}},
	} {
		version := "v1"
		if test.group == "autoscaling" {
			version = "v2"
		}
		kind := Find(test.group, version, test.plural)
		object, old := treeOf(t, test.object), treeOf(t, test.old)
		if _, err := kind.Default(object); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range kind.Validate(object, old, "") {
			got = append(got, e.Error())
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s %s:\n%s\nwant\n%s", test.plural, test.object, strings.Join(got, "\n"), strings.Join(test.want, "\n"))
		}
	}
}

// treeOf reads an object as trees have it, nil if there is none.
func treeOf(t *testing.T, source string) map[string]any {
	t.Helper()
	if source == "" {
		return nil
	}
	var object map[string]any
	if err := yaml.Unmarshal([]byte(source), &object); err != nil {
		t.Fatal(err)
	}
	return copied(object).(map[string]any)
}

// TestClaimTemplatesAreImmutable changes the claims of a StatefulSet. Their apiVersion and kind do not count.
func TestClaimTemplatesAreImmutable(t *testing.T) {
	set := func(claims string) map[string]any { return treeOf(t, "spec: {volumeClaimTemplates: "+claims+"}") }
	const one = "{metadata: {name: a}, spec: {resources: {requests: {storage: 1Gi}}}"
	for claims, want := range map[string]bool{
		"[" + one + "}]": true, "[" + one + ", apiVersion: x, kind: y}]": true, "[]": false, "[" + one + "}, " + one + "}]": false,
		"[{metadata: {name: a}, spec: {resources: {requests: {storage: 1024Mi}}}}]": true, "[{metadata: {name: b}}]": false,
	} {
		same := true
		for _, err := range Find("apps", "v1", "statefulsets").Validate(set(claims), set("["+one+"}]"), "") {
			same = same && err.Field != "spec.volumeClaimTemplates"
		}
		if same != want {
			t.Errorf("%s: taken for the same: %v", claims, same)
		}
	}
}

// TestAllocatedResources validates what the status of a pod says about devices.
func TestAllocatedResources(t *testing.T) {
	const pod = "metadata: {name: p}\nspec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1}, claims: [{name: cl}]}}]}\nstatus: "
	for status, want := range map[string]string{
		"{containerStatuses: [{name: c, allocatedResourcesStatus: [{name: cpu}, {name: 'claim:cl'}]}, {name: other, allocatedResourcesStatus: [{name: gpu}]}]}": "",
		"{containerStatuses: [{name: c, allocatedResourcesStatus: [{name: gpu}]}]}":                                                                             `status.containerStatuses[0].allocatedResourcesStatus[0].name: Invalid value: "gpu": must match one of the container's resource requests`,
		"{containerStatuses: [{name: c, allocatedResourcesStatus: [{name: 'claim:cl/r'}]}]}":                                                                    `status.containerStatuses[0].allocatedResourcesStatus[0].name: Invalid value: "claim:cl/r": must match one of the container's resource claims as 'claim:<claimName>/<requestName>' when container.resources.claims[*].request is set or 'claim:<claimName>' when it is empty`,
		"{containerStatuses: [{name: c, allocatedResourcesStatus: [{name: cpu, resources: [{resourceID: a}]}]}]}":                                               `status.containerStatuses[0].allocatedResourcesStatus[0].resources[0].health: Unsupported value: "": supported values: "Healthy", "Unhealthy", "Unknown"`,
		"{ephemeralContainerStatuses: [{name: c, allocatedResourcesStatus: [{name: cpu}]}]}":                                                                    "status.ephemeralContainerStatuses[0].allocatedResourcesStatus: Forbidden: must not be specified in container status",
	} {
		errs := Find("", "v1", "pods").Validate(treeOf(t, pod+status), treeOf(t, pod+"{}"), "status")
		if got := errs.ToAggregate(); (got == nil) != (want == "") || got != nil && got.Error() != want {
			t.Errorf("%s: %v", status, got)
		}
	}
}

// TestExtendedResourceClaimStatus validates what the status of a pod says about claims for
// extended resources. The texts are those of kube-apiserver v1.37.1.
func TestExtendedResourceClaimStatus(t *testing.T) {
	const (
		pod = "metadata: {name: p}\nspec: {containers: [{name: c, image: i, resources: {requests: {x.y/gpu: 1}}}], initContainers: [{name: i, image: i}]}\nstatus: "
		at  = "status.extendedResourceClaimStatus."
	)
	mapping := func(container, resource, request string) string {
		return "{containerName: " + container + ", resourceName: " + resource + ", requestName: " + request + "}"
	}
	for status, want := range map[string][]string{
		"resourceClaimName: r, requestMappings: [" + mapping("c", "x.y/gpu", "a") + ", " + mapping("c", "x.y/gpu", "b") + "]": nil,
		"resourceClaimName: _, requestMappings: []": {
			at + "requestMappings: Required value: at least one request mapping is required", at + `resourceClaimName: Invalid value: "_": a lowercase RFC 1123 subdomain`,
		},
		"resourceClaimName: r, requestMappings: [" + mapping("d", "x.y/gpu", "a") + "]": {
			at + `requestMappings[0].containerName: Invalid value: "d": must match the name of an entry in spec.initContainers.name or spec.containers.name`,
		},
		"resourceClaimName: r, requestMappings: [" + mapping("i", "x.y/gpu", "_") + "]": {
			at + `requestMappings[0].resourceName: Invalid value: "x.y/gpu": must match the extended resource name of an entry in spec.initContainers.resources.requests or spec.containers.resources.requests`,
			at + `requestName: Invalid value: "_": a lowercase RFC 1123 label`,
		},
		"resourceClaimName: r, requestMappings: [" + mapping("c", "x.y/gpu", "a") + ", " + mapping("c", "x.y/gpu", "a") + "]": {
			at + `requestMappings[1].containerName: Duplicate value: "c"`, at + `requestMappings[1].resourceName: Duplicate value: "x.y/gpu"`, at + `requestMappings[1].requestName: Duplicate value: "a"`,
		},
	} {
		var got []string
		for _, err := range Find("", "v1", "pods").Validate(treeOf(t, pod+"{extendedResourceClaimStatus: {"+status+"}}"), treeOf(t, pod+"{}"), "status") {
			text, _, _ := strings.Cut(err.Error(), " must consist")
			got = append(got, text)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n%s", status, strings.Join(got, "\n"))
		}
	}
}

// TestCurrentMetricsAreNotValidated: the types that a status shares with the spec have rules.
func TestCurrentMetricsAreNotValidated(t *testing.T) {
	const scaler = "metadata: {name: h}\nspec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: d}}\nstatus: "
	status := treeOf(t, scaler+"{currentMetrics: [{type: Pods, pods: {metric: {name: ''}}}, {type: Object, object: {describedObject: {kind: a/b}}}]}")
	if errs := Find("autoscaling", "v2", "horizontalpodautoscalers").Validate(status, treeOf(t, scaler+"{}"), "status"); len(errs) > 0 {
		t.Error(errs)
	}
}

// TestCompletionsFollowParallelism: the completions of an Indexed Job may change to its
// parallelism, whatever both were.
func TestCompletionsFollowParallelism(t *testing.T) {
	job := func(counts string) map[string]any { return treeOf(t, "spec: {completionMode: Indexed, "+counts+"}") }
	for counts, want := range map[string]bool{
		"completions: 3, parallelism: 3": true, "completions: 2, parallelism: 2": true, "completions: 4, parallelism: 1": true,
		"completions: 5, parallelism: 2": false, "completions: 2, parallelism: 3": false,
	} {
		allowed := true
		for _, err := range Find("batch", "v1", "jobs").Validate(job(counts), job("completions: 4, parallelism: 2"), "") {
			allowed = allowed && err.Field != "spec.completions"
		}
		if allowed != want {
			t.Errorf("%s: allowed %v", counts, allowed)
		}
	}
}

// TestWholeQuantities compares with kube-apiserver v1.37.1, which takes many numbers for
// whole that an int64 does not hold in thousandths.
func TestWholeQuantities(t *testing.T) {
	for text, want := range map[string]bool{"1": true, "1P": true, "1E": true, "8E": true, "10E": true, "1e30": true, "9223372036854775807": true, "1500m": false, "1Ei": false} {
		whole := true
		for _, err := range Find("", "v1", "nodes").Validate(treeOf(t, "status: {capacity: {pods: '"+text+"'}}"), nil, "") {
			whole = whole && err.Field != "status.capacity.pods"
		}
		if whole != want {
			t.Errorf("%s: whole %v", text, whole)
		}
	}
}

// TestOverheadIsNotRounded checks that quantities of other groups than core stay as they are.
func TestOverheadIsNotRounded(t *testing.T) {
	class := treeOf(t, "handler: h\noverhead: {podFixed: {cpu: 1n}}")
	if _, err := Find("node.k8s.io", "v1", "runtimeclasses").Default(class); err != nil {
		t.Fatal(err)
	}
	if got := text(class["overhead"]); got != `{"podFixed":{"cpu":"1n"}}` {
		t.Errorf("overhead %s", got)
	}
}

// TestExternalServicesHaveNoInternalPolicy drops the policy unless it is an error.
func TestExternalServicesHaveNoInternalPolicy(t *testing.T) {
	services := Find("", "v1", "services")
	for policy, want := range map[string]any{"Local": nil, "Cluster": nil, "x": "x"} {
		for _, old := range []map[string]any{nil, treeOf(t, "spec: {type: ExternalName, externalName: a.b}")} {
			service := treeOf(t, "spec: {type: ExternalName, externalName: a.b, internalTrafficPolicy: "+policy+"}")
			if _, err := services.Prepare(service, old); err != nil {
				t.Fatal(err)
			}
			if got := service["spec"].(map[string]any)["internalTrafficPolicy"]; got != want {
				t.Errorf("%s: %v", policy, got)
			}
		}
	}
}
