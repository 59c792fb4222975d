package builtin

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/espalier-dev/espalier/crd/kinds"
)

// examplePod is a pod as a Deployment makes them.
const examplePod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"%s","namespace":"default","labels":{"app.kubernetes.io/name":"shop","app.kubernetes.io/instance":"shop","pod-template-hash":"7d4b9c"},
"annotations":{"bench.espalier.dev/revision":"0000000","prometheus.io/scrape":"true"}},
"spec":{"serviceAccountName":"shop","terminationGracePeriodSeconds":30,"securityContext":{"runAsNonRoot":true,"fsGroup":1000},
"containers":[{"name":"shop","image":"registry.example.com/shop:1.2.3","args":["--listen=:8080"],"ports":[{"name":"http","containerPort":8080},{"name":"metrics","containerPort":9090}],
"env":[{"name":"A","value":"1"},{"name":"POD","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}},{"name":"PASSWORD","valueFrom":{"secretKeyRef":{"name":"shop","key":"password"}}}],
"resources":{"requests":{"cpu":"100m","memory":"128Mi"},"limits":{"memory":"256Mi"}},
"livenessProbe":{"httpGet":{"path":"/healthz","port":"http"},"periodSeconds":10},"readinessProbe":{"httpGet":{"path":"/readyz","port":"http"}},
"securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]},"readOnlyRootFilesystem":true},
"volumeMounts":[{"name":"config","mountPath":"/etc/shop"},{"name":"tmp","mountPath":"/tmp"}]},
{"name":"proxy","image":"registry.example.com/proxy:2.0","ports":[{"containerPort":15001}],"resources":{"requests":{"cpu":"10m"}}}],
"volumes":[{"name":"config","configMap":{"name":"shop"}},{"name":"tmp","emptyDir":{}}],
"tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}],
"affinity":{"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":100,"podAffinityTerm":{"labelSelector":{"matchLabels":{"app":"shop"}},"topologyKey":"kubernetes.io/hostname"}}]}}}}`

// BenchmarkPods creates, updates and lists pods over HTTP, on etcd.
func BenchmarkPods(b *testing.B) {
	e := start(b, Data()...)
	send := func(method, path string, body []byte) []byte {
		req, err := http.NewRequest(method, e.URL+path, bytes.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		req.Header.Set("Content-Type", runtime.ContentTypeJSON)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode > 299 {
			b.Fatalf("%s %v %s", resp.Status, err, answer)
		}
		return answer
	}
	const path = "/api/v1/namespaces/default/pods"
	var last []byte
	b.Run("create", func(b *testing.B) {
		b.ReportAllocs()
		for i := range b.N {
			last = send(http.MethodPost, path, fmt.Appendf(nil, examplePod, fmt.Sprintf("p-%d-%d", b.N, i)))
		}
	})
	b.Run("update", func(b *testing.B) {
		b.ReportAllocs()
		var name string
		if _, rest, ok := bytes.Cut(last, []byte(`"name":"`)); ok {
			n, _, _ := bytes.Cut(rest, []byte(`"`))
			name = string(n)
		}
		for i := range b.N {
			_, rest, _ := bytes.Cut(last, []byte(`revision":"`))
			last = send(http.MethodPut, path+"/"+name, bytes.Replace(last, append([]byte(`revision":"`), rest[:7]...), fmt.Appendf(nil, `revision":"%07d`, i+1), 1))
		}
	})
	b.Run("list", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			send(http.MethodGet, path+"?limit=100", nil)
		}
	})
}

// BenchmarkStrategy is what the rules of a pod take.
func BenchmarkStrategy(b *testing.B) {
	r := resourceOf(b, "pods")
	obj := decodePod(b, &r)
	for name, step := range map[string]func(){
		"tree":     func() { kinds.Tree(obj) },
		"assign":   func() { kinds.Assign(kinds.Tree(obj), &corev1.Pod{}) },
		"default":  func() { r.Strategy.fill(obj) },
		"create":   func() { r.Strategy.Create(b.Context(), obj) },
		"validate": func() { r.Strategy.Validate(b.Context(), obj) },
		"warn":     func() { r.Strategy.Warn(b.Context(), obj) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				step()
			}
		})
	}
}

// BenchmarkLargePod is what the rules of a pod of 8,000 containers take.
func BenchmarkLargePod(b *testing.B) {
	r := resourceOf(b, "pods")
	pod := decodePod(b, &r).(*corev1.Pod)
	one := pod.Spec.Containers[1]
	one.Ports = nil
	pod.Spec.Containers = nil
	for i := range 8000 {
		one.Name = fmt.Sprint("c", i)
		pod.Spec.Containers = append(pod.Spec.Containers, one)
	}
	for name, step := range map[string]func(){
		"tree":     func() { kinds.Tree(pod) },
		"default":  func() { r.Strategy.fill(pod) },
		"create":   func() { r.Strategy.Create(b.Context(), pod) },
		"validate": func() { r.Strategy.Validate(b.Context(), pod) },
		"warn":     func() { r.Strategy.Warn(b.Context(), pod) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				step()
			}
		})
	}
}
