package builtin

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/espalier-dev/espalier/crd/rules"
)

// specChanged is a value for Strategy.Generation.
func specChanged(obj, old runtime.Object) bool { return differ(obj, old, []string{"spec"}, false) }

// startPods serves pods and budgets without the rules of their files.
func startPods(t *testing.T) (kubernetes.Interface, *env) {
	t.Helper()
	pods := Resource{
		Version: "v1", Plural: "pods", Singular: "pod", Kind: "Pod", Namespaced: true,
		New: empty[corev1.Pod], NewList: empty[corev1.PodList],
		Strategy: Strategy{Unconditional: true, Generation: specChanged},
	}
	statusOnly(&pods, func(p *corev1.Pod) (*corev1.PodSpec, *corev1.PodStatus) { return &p.Spec, &p.Status })
	addPods(&pods)
	budgets := Resource{
		Group: "policy", Version: "v1", Plural: "poddisruptionbudgets", Singular: "poddisruptionbudget", Kind: "PodDisruptionBudget", Namespaced: true,
		New: empty[policyv1.PodDisruptionBudget], NewList: empty[policyv1.PodDisruptionBudgetList],
		Strategy: Strategy{Unconditional: true, Generation: specChanged},
	}
	statusOnly(&budgets, func(b *policyv1.PodDisruptionBudget) (*policyv1.PodDisruptionBudgetSpec, *policyv1.PodDisruptionBudgetStatus) {
		return &b.Spec, &b.Status
	})
	e := start(t, connected([]Resource{pods, budgets})...)
	return e.client("application/json"), e
}

// statusOnly gives a resource a status, and no other rules.
func statusOnly[P interface {
	runtime.Object
	metav1.Object
}, Spec, Status any](r *Resource, parts func(obj P) (*Spec, *Status)) {
	all := rules.WithStatus(rules.Rules{Name: apivalidation.NameIsDNSSubdomain}, func(*Status) field.ErrorList { return nil }, parts)
	r.Strategy = Ruled(&all, r.Strategy)
	withStatus(r, all.Status)
}

func newPod(t *testing.T, c kubernetes.Interface, name string, change func(*corev1.Pod)) *corev1.Pod {
	t.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "a"}}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "c", Image: "i"}}, TerminationGracePeriodSeconds: ptr.To[int64](30),
	}}
	if change != nil {
		change(p)
	}
	p, err := c.CoreV1().Pods("default").Create(t.Context(), p, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func onNode(p *corev1.Pod) { p.Spec.NodeName = "n1" }

// run writes the status of a pod.
func run(t *testing.T, c kubernetes.Interface, name string, phase corev1.PodPhase, ready corev1.ConditionStatus) {
	t.Helper()
	p, err := c.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p.Status.Phase, p.Status.Conditions = phase, []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
	if _, err := c.CoreV1().Pods("default").UpdateStatus(t.Context(), p, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func failsWith(t *testing.T, what string, err error, want string) {
	t.Helper()
	if err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%s: got %v, want %s", what, err, want)
	}
}

// The texts are those of kube-apiserver v1.37.1.
func TestBinding(t *testing.T) {
	c, e := startPods(t)
	pods := c.CoreV1().Pods("default")
	p := newPod(t, c, "p", nil)
	if p.Status.Phase != corev1.PodPending || p.Status.QOSClass != corev1.PodQOSBestEffort {
		t.Errorf("a new pod has the status %+v", p.Status)
	}
	bind := func(name string, change func(*corev1.Binding)) error {
		b := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: name}, Target: corev1.ObjectReference{Kind: "Node", Name: "n1"}}
		if change != nil {
			change(b)
		}
		return pods.Bind(t.Context(), b, metav1.CreateOptions{})
	}
	failsWith(t, "kind", bind("p", func(b *corev1.Binding) { b.Target.Kind = "Foo" }), `target.kind: Unsupported value: "Foo": supported values: "Node", "<empty>"`)
	failsWith(t, "no node", bind("p", func(b *corev1.Binding) { b.Target.Name = "" }), `target.name: Required value`)
	failsWith(t, "missing", bind("nope", nil), `pods "nope" not found`)
	if err := bind("p", func(b *corev1.Binding) { b.UID = "xyz" }); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "Precondition failed: UID in precondition: xyz, UID in object meta: "+string(p.UID)) {
		t.Error(err)
	}
	if err := bind("p", func(b *corev1.Binding) {
		b.Annotations, b.Labels = map[string]string{"x": "y"}, map[string]string{"app": "new"}
	}); err != nil {
		t.Fatal(err)
	}
	p, err := pods.Get(t.Context(), "p", metav1.GetOptions{})
	if err != nil || p.Spec.NodeName != "n1" || p.Annotations["x"] != "y" || p.Labels["app"] != "new" || p.Generation != 1 ||
		len(p.Status.Conditions) != 1 || p.Status.Conditions[0].Type != corev1.PodScheduled || p.Status.Conditions[0].Status != corev1.ConditionTrue {
		t.Errorf("got %+v, %v", p, err)
	}
	failsWith(t, "again", bind("p", nil), `Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "n1"`)
	err = e.client("application/json").CoreV1().RESTClient().Post().Namespace("default").Resource("bindings").
		Body(&corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Target: corev1.ObjectReference{Name: "n2"}}).Do(t.Context()).Error()
	failsWith(t, "bindings", err, `Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "n1"`)
	newPod(t, c, "gated", func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g.io/a"}} })
	failsWith(t, "gated", bind("gated", nil), `pod gated has non-empty .spec.schedulingGates`)
}

// Two schedulers bind one pod: one of them succeeds.
func TestBindingRace(t *testing.T) {
	c, _ := startPods(t)
	newPod(t, c, "p", nil)
	var wg sync.WaitGroup
	var won atomic.Int64
	for i := range 8 {
		wg.Go(func() {
			b := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Target: corev1.ObjectReference{Name: fmt.Sprint("n", i)}}
			if err := c.CoreV1().Pods("default").Bind(context.Background(), b, metav1.CreateOptions{}); err == nil {
				won.Add(1)
			} else if !apierrors.IsConflict(err) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		t.Errorf("%d bindings succeeded", won.Load())
	}
}

func TestPodDeletion(t *testing.T) {
	c, _ := startPods(t)
	pods := c.CoreV1().Pods("default")
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		phase  corev1.PodPhase
		grace  *int64
		want   int64 // 0: gone
	}{
		"unassigned": {nil, "", nil, 0},
		"assigned":   {onNode, corev1.PodRunning, nil, 30},
		"shorter":    {onNode, corev1.PodRunning, ptr.To[int64](5), 5},
		"at once":    {onNode, corev1.PodRunning, ptr.To[int64](0), 0},
		"negative":   {onNode, corev1.PodRunning, ptr.To[int64](-3), 1},
		"finished":   {onNode, corev1.PodSucceeded, nil, 0},
		"no time":    {func(p *corev1.Pod) { onNode(p); p.Spec.TerminationGracePeriodSeconds = ptr.To[int64](0) }, corev1.PodRunning, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			name := strings.ReplaceAll(name, " ", "-")
			newPod(t, c, name, test.change)
			if test.phase != "" {
				run(t, c, name, test.phase, corev1.ConditionTrue)
			}
			if err := pods.Delete(t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: test.grace}); err != nil {
				t.Fatal(err)
			}
			p, err := pods.Get(t.Context(), name, metav1.GetOptions{})
			switch {
			case test.want == 0:
				if !apierrors.IsNotFound(err) {
					t.Errorf("it is still there: %v", err)
				}
			case err != nil || p.DeletionTimestamp == nil || *p.DeletionGracePeriodSeconds != test.want || p.Generation != 2:
				t.Errorf("got %+v, %v", p.ObjectMeta, err)
			}
		})
	}
}

func newBudget(t *testing.T, c kubernetes.Interface, name string, allowed int32) {
	t.Helper()
	budgets := c.PolicyV1().PodDisruptionBudgets("default")
	_ = budgets.Delete(t.Context(), name, metav1.DeleteOptions{})
	b, err := budgets.Create(t.Context(), &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: policyv1.PodDisruptionBudgetSpec{
		MinAvailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if allowed < 0 {
		return
	}
	b.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: b.Generation, DisruptionsAllowed: allowed, CurrentHealthy: 1 + allowed, DesiredHealthy: 1, ExpectedPods: 1 + allowed}
	if _, err := budgets.UpdateStatus(t.Context(), b, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func evictNow(c kubernetes.Interface, name string, how *metav1.DeleteOptions) error {
	return c.CoreV1().RESTClient().Post().Namespace("default").Resource("pods").Name(name).SubResource("eviction").MaxRetries(0).
		Body(&policyv1.Eviction{TypeMeta: metav1.TypeMeta{APIVersion: "policy/v1", Kind: "Eviction"}, ObjectMeta: metav1.ObjectMeta{Name: name}, DeleteOptions: how}).
		Do(context.Background()).Error()
}

func causeOf(err error) string {
	if status, ok := err.(apierrors.APIStatus); ok && apierrors.IsTooManyRequests(err) && status.Status().Details != nil && len(status.Status().Details.Causes) == 1 {
		return fmt.Sprint(status.Status().Details.Causes[0].Type, ": ", status.Status().Details.Causes[0].Message)
	}
	return fmt.Sprint(err)
}

// The texts are those of kube-apiserver v1.37.1.
func TestEviction(t *testing.T) {
	c, _ := startPods(t)
	pods, budgets := c.CoreV1().Pods("default"), c.PolicyV1().PodDisruptionBudgets("default")
	failsWith(t, "missing", evictNow(c, "nope", nil), `pods "nope" not found`)
	newBudget(t, c, "b", 0)
	newPod(t, c, "pending", onNode)
	if err := evictNow(c, "pending", nil); err != nil {
		t.Error(err)
	}
	p := newPod(t, c, "e", onNode)
	run(t, c, "e", corev1.PodRunning, corev1.ConditionTrue)
	newBudget(t, c, "b", -1)
	if got := causeOf(evictNow(c, "e", nil)); got != "DisruptionBudget: The disruption budget b is still being processed by the server." {
		t.Error(got)
	}
	newBudget(t, c, "b", 0)
	if got := causeOf(evictNow(c, "e", nil)); got != "DisruptionBudget: The disruption budget b needs 1 healthy pods and has 1 currently" {
		t.Error(got)
	}
	newBudget(t, c, "b", 1)
	newBudget(t, c, "b2", 1)
	failsWith(t, "two budgets", evictNow(c, "e", nil), "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.")
	if err := budgets.Delete(t.Context(), "b2", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	failsWith(t, "uid", evictNow(c, "e", &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("xx")}),
		"the UID in the precondition (xx) does not match the UID in record ("+string(p.UID)+"). The object might have been deleted and then recreated")
	if err := evictNow(c, "e", &metav1.DeleteOptions{DryRun: []string{"All"}}); err != nil {
		t.Error(err)
	}
	if b, err := budgets.Get(t.Context(), "b", metav1.GetOptions{}); err != nil || b.Status.DisruptionsAllowed != 1 || len(b.Status.DisruptedPods) != 0 {
		t.Errorf("refused and dry runs count: %+v, %v", b, err)
	}
	if err := evictNow(c, "e", &metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](7)}); err != nil {
		t.Fatal(err)
	}
	b, err := budgets.Get(t.Context(), "b", metav1.GetOptions{})
	if err != nil || b.Status.DisruptionsAllowed != 0 || len(b.Status.DisruptedPods) != 1 || len(b.Status.Conditions) != 1 || b.Status.Conditions[0].Reason != "InsufficientPods" {
		t.Errorf("got %+v, %v", b, err)
	}
	p, err = pods.Get(t.Context(), "e", metav1.GetOptions{})
	if err != nil || *p.DeletionGracePeriodSeconds != 7 || len(p.Status.Conditions) != 2 || p.Status.Conditions[1].Reason != "EvictionByEvictionAPI" {
		t.Errorf("got %+v, %v", p, err)
	}
	newPod(t, c, "unready", onNode)
	run(t, c, "unready", corev1.PodRunning, corev1.ConditionFalse)
	if err := evictNow(c, "unready", nil); err != nil { // as many are healthy as must be, without it
		t.Error(err)
	}
}

// Eight evictions share a budget of three.
func TestEvictionsShareABudget(t *testing.T) {
	c, _ := startPods(t)
	for i := range 8 {
		newPod(t, c, fmt.Sprint("p", i), onNode)
		run(t, c, fmt.Sprint("p", i), corev1.PodRunning, corev1.ConditionTrue)
	}
	newBudget(t, c, "b", 3)
	var wg sync.WaitGroup
	var evicted atomic.Int64
	for i := range 8 {
		wg.Go(func() {
			if err := evictNow(c, fmt.Sprint("p", i), nil); err == nil {
				evicted.Add(1)
			} else if !apierrors.IsTooManyRequests(err) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	b, err := c.PolicyV1().PodDisruptionBudgets("default").Get(t.Context(), "b", metav1.GetOptions{})
	if err != nil || evicted.Load() != 3 || b.Status.DisruptionsAllowed != 0 || len(b.Status.DisruptedPods) != 3 {
		t.Errorf("%d were evicted, %+v, %v", evicted.Load(), b, err)
	}
}

func TestEphemeralContainersAndResize(t *testing.T) {
	c, _ := startPods(t)
	pods := c.CoreV1().Pods("default")
	list := func(cpu string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	}
	p := newPod(t, c, "p", func(p *corev1.Pod) {
		onNode(p)
		p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: list("1"), Limits: list("2")}
	})
	if p.Status.QOSClass != corev1.PodQOSBurstable {
		t.Errorf("got %s", p.Status.QOSClass)
	}
	sent := p.DeepCopy()
	sent.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "d", Image: "x"}}}
	sent.Spec.Containers[0].Image, sent.Labels["new"] = "zzz", "x"
	got, err := pods.UpdateEphemeralContainers(t.Context(), "p", sent, metav1.UpdateOptions{})
	if err != nil || len(got.Spec.EphemeralContainers) != 1 || got.Spec.Containers[0].Image != "i" || got.Labels["new"] != "" || got.Generation != 2 {
		t.Fatalf("got %+v, %v", got, err)
	}
	sent = got.DeepCopy()
	sent.Spec.EphemeralContainers[0].Image = "y"
	if _, err = pods.UpdateEphemeralContainers(t.Context(), "p", sent, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), `spec.ephemeralContainers: Forbidden: existing ephemeral containers "d" may not be changed`) {
		t.Error(err)
	}
	sent.Spec.EphemeralContainers = nil
	if _, err = pods.UpdateEphemeralContainers(t.Context(), "p", sent, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), `existing ephemeral containers "d" may not be removed`) {
		t.Error(err)
	}

	resize := func(change func(*corev1.Container)) (*corev1.Pod, error) {
		sent := got.DeepCopy()
		sent.ResourceVersion = ""
		change(&sent.Spec.Containers[0])
		return pods.UpdateResize(t.Context(), "p", sent, metav1.UpdateOptions{})
	}
	resized, err := resize(func(c *corev1.Container) { c.Image, c.Resources.Requests = "zzz", list("1500m") })
	if err != nil || resized.Spec.Containers[0].Image != "i" || !resized.Spec.Containers[0].Resources.Requests.Cpu().Equal(resource.MustParse("1500m")) {
		t.Errorf("got %+v, %v", resized, err)
	}
	_, err = resize(func(c *corev1.Container) { c.Resources.Limits = nil })
	failsWith(t, "removed", err, "spec.containers[0].resources.limits: Forbidden: resource limits cannot be removed")
	_, err = resize(func(c *corev1.Container) { c.Resources.Limits["ephemeral-storage"] = resource.MustParse("1") })
	failsWith(t, "other resource", err, "spec: Forbidden: only cpu and memory resources are mutable")
	_, err = resize(func(c *corev1.Container) {
		c.Resources.Limits["memory"], c.Resources.Requests["memory"] = resource.MustParse("1"), resource.MustParse("1")
		c.Resources.Requests["cpu"] = c.Resources.Limits["cpu"]
	})
	failsWith(t, "class", err, `spec: Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing`)
	_, err = resize(func(c *corev1.Container) {
		c.ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: "cpu", RestartPolicy: corev1.RestartContainer}}
	})
	failsWith(t, "policy", err, "spec: Forbidden: only cpu and memory resources are mutable")
	_, err = resize(func(c *corev1.Container) { c.Name = "z" })
	failsWith(t, "renamed", err, "spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize")
}

// The texts are those of kube-apiserver v1.37.1.
func TestResizeOfPods(t *testing.T) {
	e := start(t, Data()...)
	pods := e.client("application/json").CoreV1().Pods("default")
	e.Do("POST", "/api/v1/namespaces/default/pods", `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"1"}}}],
		"initContainers":[{"name":"i","image":"i","restartPolicy":"Always","resources":{"requests":{"cpu":"1"}}}],"resources":{"requests":{"cpu":"5"},"limits":{"cpu":"8"}}}}`).Is(http.StatusCreated)
	for name, test := range map[string]struct {
		change func(*corev1.PodSpec)
		want   string
	}{
		"added":        {func(s *corev1.PodSpec) { s.Containers = append(s.Containers, corev1.Container{Name: "d", Image: "i"}) }, "spec.containers: Forbidden: containers may not be added or removed on resize"},
		"init removed": {func(s *corev1.PodSpec) { s.InitContainers = nil }, "spec.initContainers: Forbidden: initContainers may not be added or removed on resize"},
		"init policy": {func(s *corev1.PodSpec) {
			s.InitContainers[0].ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: "cpu", RestartPolicy: corev1.RestartContainer}}
		}, "spec.initContainers[0]: Forbidden: only cpu and memory resources for init or sidecar containers are mutable"},
		"limit removed": {func(s *corev1.PodSpec) { s.Resources.Limits = nil }, "spec.resources.limits: Forbidden: pod-level resource limits cannot be removed"},
		"above limit":   {func(s *corev1.PodSpec) { s.Resources.Requests["cpu"] = resource.MustParse("9") }, `spec.resources.requests: Invalid value: "9": must be less than or equal to cpu limit of 8`},
		"huge pages": {func(s *corev1.PodSpec) {
			s.Resources.Requests["hugepages-2Mi"], s.Resources.Limits["hugepages-2Mi"] = resource.MustParse("2Mi"), resource.MustParse("2Mi")
		}, "spec: Forbidden: only cpu and memory resources are mutable at pod-level"},
		"fits": {func(s *corev1.PodSpec) { s.Resources.Requests["cpu"] = resource.MustParse("6") }, ""},
		"none": {func(s *corev1.PodSpec) { s.Resources = nil }, ""},
	} {
		p, err := pods.Get(t.Context(), "p", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		was := p.Spec.Resources.Requests.Cpu().String()
		test.change(&p.Spec)
		p, err = pods.UpdateResize(t.Context(), "p", p, metav1.UpdateOptions{})
		if test.want != "" {
			failsWith(t, name, err, test.want)
			continue
		}
		want := map[string]string{"fits": "6", "none": was}[name]
		if err != nil || p.Spec.Resources.Requests.Cpu().String() != want {
			t.Errorf("%s: %v, %v", name, p.Spec.Resources, err)
		}
	}
}

// A kubelet makes mirror pods of files. The texts are those of kube-apiserver v1.37.1.
func TestMirrorPods(t *testing.T) {
	e := start(t, Data()...)
	const path, key = "/api/v1/namespaces/default/pods", `"annotations":{"kubernetes.io/config.mirror":`
	e.Do("POST", path, `{"metadata":{"name":"m",`+key+`"x"}},"spec":{"nodeName":"n","containers":[{"name":"c","image":"i"}]}}`).Is(http.StatusCreated)
	e.Do("POST", path, `{"metadata":{"name":"p"},"spec":{"nodeName":"n","containers":[{"name":"c","image":"i"}]}}`).Is(http.StatusCreated)
	for _, test := range []struct{ path, patch, want string }{
		{"/m", `{"metadata":{` + key + `"y"}}}`, "may not remove or update mirror pod annotation"},
		{"/m", `{"metadata":{"annotations":null}}`, "may not remove or update mirror pod annotation"},
		{"/m/status", `{"metadata":{` + key + `"y"}}}`, "may not remove or update mirror pod annotation"},
		{"/p", `{"metadata":{` + key + `"y"}}}`, "may not add mirror pod annotation"},
		{"/p/status", `{"metadata":{` + key + `"y"}}}`, "may not add mirror pod annotation"},
		{"/m/ephemeralcontainers", `{"spec":{"ephemeralContainers":[{"name":"d","image":"i"}]}}`, "[]: Forbidden: static pods do not support ephemeral containers"},
		{"/m/resize", `{}`, "[]: Forbidden: static pods cannot be resized"},
	} {
		if a := e.Do("PATCH", path+test.path, test.patch, "Content-Type: application/merge-patch+json"); a.Code != http.StatusUnprocessableEntity || !strings.Contains(string(a.Body), test.want) {
			t.Errorf("%s %s: %d %s", test.path, test.patch, a.Code, a.Body)
		}
	}
	a := e.Do("POST", path, `{"metadata":{"name":"r",`+key+`"x"}},"spec":{"nodeName":"n","containers":[{"name":"c","image":"i"}],"resourceClaims":[{"name":"c","resourceClaimName":"c"}]}}`)
	if a.Code != http.StatusUnprocessableEntity || !strings.Contains(string(a.Body), "[]: Forbidden: static pods do not support resource claims") {
		t.Errorf("%d %s", a.Code, a.Body)
	}
}

// The texts are those of kube-apiserver v1.37.1.
func TestScaleOfDeployment(t *testing.T) {
	r := Resource{
		Group: "apps", Version: "v1", Plural: "deployments", Singular: "deployment", Kind: "Deployment", Namespaced: true,
		New: empty[appsv1.Deployment], NewList: empty[appsv1.DeploymentList],
		Strategy: Strategy{Unconditional: true, Generation: specChanged},
	}
	statusOnly(&r, func(d *appsv1.Deployment) (*appsv1.DeploymentSpec, *appsv1.DeploymentStatus) {
		return &d.Spec, &d.Status
	})
	addScale(&r)
	c := start(t, r).client("application/json")
	all := c.AppsV1().Deployments("default")
	d, err := all.Create(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "d"}, Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](2), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}, MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "x", Operator: "In", Values: []string{"2", "1"}}}},
	}}, metav1.CreateOptions{FieldManager: "creator"})
	if err != nil {
		t.Fatal(err)
	}
	scale, err := all.GetScale(t.Context(), "d", metav1.GetOptions{})
	if err != nil || scale.Spec.Replicas != 2 || scale.Status.Selector != "a=b,x in (1,2)" || scale.UID != d.UID || len(scale.ManagedFields) != 0 {
		t.Fatalf("got %+v, %v", scale, err)
	}
	scale.Spec.Replicas = 3
	if scale, err = all.UpdateScale(t.Context(), "d", scale, metav1.UpdateOptions{FieldManager: "scaler"}); err != nil || scale.Spec.Replicas != 3 {
		t.Fatalf("got %+v, %v", scale, err)
	}
	patch := func(text string) error {
		return c.AppsV1().RESTClient().Patch(types.MergePatchType).Namespace("default").Resource("deployments").Name("d").SubResource("scale").
			Body([]byte(text)).Do(t.Context()).Into(&autoscalingv1.Scale{})
	}
	failsWith(t, "negative", patch(`{"spec":{"replicas":-1}}`), `Scale.autoscaling "d" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0`)
	failsWith(t, "uid", patch(`{"metadata":{"uid":"xx"},"spec":{"replicas":5}}`), `Operation cannot be fulfilled on deployments/scale.apps "d": Precondition failed: UID in precondition: xx, UID in object meta: `+string(d.UID))
	failsWith(t, "old", patch(`{"metadata":{"resourceVersion":"1"},"spec":{"replicas":5}}`), `Operation cannot be fulfilled on deployments.apps "d": the object has been modified; please apply your changes to the latest version and try again`)
	if d, err = all.Get(t.Context(), "d", metav1.GetOptions{}); err != nil || *d.Spec.Replicas != 3 || d.Generation != 2 {
		t.Errorf("got %+v, %v", d, err)
	}
	owners := map[string]string{}
	for _, m := range d.ManagedFields {
		owners[m.Manager+"/"+m.Subresource] = string(m.FieldsV1.GetRawBytes())
	}
	if owners["scaler/scale"] != `{"f:spec":{"f:replicas":{}}}` || strings.Contains(owners["creator/"], "f:replicas") {
		t.Errorf("got %v", owners)
	}
}

func TestQOSClass(t *testing.T) {
	full := corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")}
	half := corev1.ResourceList{"cpu": resource.MustParse("1")}
	for name, test := range map[string]struct {
		requests, limits corev1.ResourceList
		want             corev1.PodQOSClass
	}{
		"none":     {nil, nil, corev1.PodQOSBestEffort},
		"storage":  {corev1.ResourceList{"ephemeral-storage": resource.MustParse("1")}, nil, corev1.PodQOSBestEffort},
		"requests": {full, nil, corev1.PodQOSBurstable},
		"half":     {half, half, corev1.PodQOSBurstable},
		"full":     {full, full, corev1.PodQOSGuaranteed},
	} {
		p := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: test.requests, Limits: test.limits}}}}}
		if got := qosClass(p); got != test.want {
			t.Errorf("%s: got %s", name, got)
		}
	}
}

// Keys are those of kube-apiserver.
func TestPrefixes(t *testing.T) {
	list := connected([]Resource{{Plural: "services"}, {Plural: "replicationcontrollers"}, {Plural: "pods"}})
	for i, want := range []string{"/services/specs", "/controllers", "/pods"} {
		if key, ok := list[i].Key(); !ok || key != want {
			t.Errorf("%s: got %s", list[i].Plural, key)
		}
	}
	if len(list) != 4 || list[3].Plural != "bindings" {
		t.Errorf("got %d resources", len(list))
	}
}

// Pods with the rules of their file get ephemeral containers and are resized.
func TestPodPartsWithRules(t *testing.T) {
	pods := start(t, Data()...).client("application/json").CoreV1().Pods("default")
	p, err := pods.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}}},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "d", Image: "x"}}}
	if p, err = pods.UpdateEphemeralContainers(t.Context(), "p", p, metav1.UpdateOptions{}); err != nil || len(p.Spec.EphemeralContainers) != 1 {
		t.Fatalf("got %v, %v", p, err)
	}
	p.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("2")
	if p, err = pods.UpdateResize(t.Context(), "p", p, metav1.UpdateOptions{}); err != nil || p.Spec.Containers[0].Resources.Requests.Cpu().Value() != 2 {
		t.Fatalf("got %v, %v", p, err)
	}
	p.Spec.EphemeralContainers = append(p.Spec.EphemeralContainers, corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Image: "x"}})
	_, err = pods.UpdateEphemeralContainers(t.Context(), "p", p, metav1.UpdateOptions{})
	failsWith(t, "no name", err, "spec.ephemeralContainers[1].name: Required value")
}

// No pod runs here, so that there is no cluster policy against privileged ones.
func TestPrivilegedPods(t *testing.T) {
	pods := start(t, Data()...).client("application/json").CoreV1().Pods("default")
	if _, err := pods.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "c", Image: "i", SecurityContext: &corev1.SecurityContext{Privileged: ptr.To(true)}}},
	}}, metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
}

// TestAppArmorAnnotations checks how the annotations of older clients become fields. The
// answers are those of kube-apiserver v1.37.1.
func TestAppArmorAnnotations(t *testing.T) {
	c := start(t, Data()...).client("application/json").CoreV1().Pods("default")
	profile := func(kind corev1.AppArmorProfileType, name ...string) *corev1.AppArmorProfile {
		p := &corev1.AppArmorProfile{Type: kind}
		if len(name) > 0 {
			p.LocalhostProfile = &name[0]
		}
		return p
	}
	for i, test := range []struct {
		annotation   string
		pod, c, want *corev1.AppArmorProfile
		fails        string
	}{
		{"localhost/x", nil, nil, profile("Localhost", "x"), ""},
		{"runtime/default", nil, nil, profile("RuntimeDefault"), ""},
		{"unconfined", profile("RuntimeDefault"), nil, profile("Unconfined"), ""},
		{"runtime/default", profile("RuntimeDefault"), nil, nil, ""},
		{"localhost/", nil, nil, nil, ""},
		{"localhost/x", nil, profile("Localhost", "x"), profile("Localhost", "x"), ""},
		{"localhost/y", nil, profile("Localhost", "x"), nil, "spec.containers[0].securityContext.appArmorProfile.localhostProfile: Forbidden: apparmor profile in annotation and field must match"},
	} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p", i), Annotations: map[string]string{"container.apparmor.security.beta.kubernetes.io/c": test.annotation}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
		if test.pod != nil {
			p.Spec.SecurityContext = &corev1.PodSecurityContext{AppArmorProfile: test.pod}
		}
		if test.c != nil {
			p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{AppArmorProfile: test.c}
		}
		got, err := c.Create(t.Context(), p, metav1.CreateOptions{})
		if test.fails != "" {
			if err == nil || !strings.Contains(err.Error(), test.fails) {
				t.Errorf("%s: %v", test.annotation, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", test.annotation, err)
		}
		var have *corev1.AppArmorProfile
		if s := got.Spec.Containers[0].SecurityContext; s != nil {
			have = s.AppArmorProfile
		}
		if !equality.Semantic.DeepEqual(have, test.want) {
			t.Errorf("%s: %v, want %v", test.annotation, have, test.want)
		}
	}
}
