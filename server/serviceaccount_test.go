package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/espalier-dev/espalier/server"
)

const accessPath = "/var/run/secrets/kubernetes.io/serviceaccount"

// What kube-apiserver v1.37.1 answers with the same accounts.
func TestServiceAccount(t *testing.T) {
	t.Parallel()
	r := start(t, func(o *server.Options) { o.Kinds = server.KindsAll })
	client, err := kubernetes.NewForConfig(r.config(t))
	if err != nil {
		t.Fatal(err)
	}
	strict := map[string]string{"kubernetes.io/enforce-mountable-secrets": "true"}
	for _, account := range []*corev1.ServiceAccount{
		{ObjectMeta: metav1.ObjectMeta{Name: "off"}, AutomountServiceAccountToken: ptr.To(false)},
		{ObjectMeta: metav1.ObjectMeta{Name: "pulls"}, ImagePullSecrets: []corev1.LocalObjectReference{{Name: "b"}, {Name: "a"}}},
		{
			ObjectMeta: metav1.ObjectMeta{Name: "strict", Annotations: strict},
			Secrets:    []corev1.ObjectReference{{Name: "ok"}}, ImagePullSecrets: []corev1.LocalObjectReference{{Name: "pull"}},
		},
	} {
		if _, err := client.CoreV1().ServiceAccounts("default").Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	const mirror = `"metadata":{"annotations":{"kubernetes.io/config.mirror":"x"}},`
	const refused = ` is not allowed because service account strict does not reference that `
	const env = `{"name":"A","valueFrom":{"secretKeyRef":{"name":"no","key":"k"}}}`
	own := fmt.Sprintf(`"volumes":[{"name":"v","emptyDir":{}}],"containers":[{"name":"c","image":"i","volumeMounts":[{"name":"v","mountPath":%q}]}]`, accessPath)
	for _, test := range []struct {
		meta, spec string
		want       string // account, pull secrets, volumes, volumes mounted at the path in each container; or the error
	}{
		{"", ``, "default [] [kube-api-access-*] [kube-api-access-*]"},
		{"", `"serviceAccount":"off"`, "off [] [] [-]"},
		{"", `"serviceAccountName":"off","serviceAccount":"default"`, "off [] [] [-]"},
		{"", `"serviceAccountName":"off","automountServiceAccountToken":true`, "off [] [kube-api-access-*] [kube-api-access-*]"},
		{"", `"automountServiceAccountToken":false`, "default [] [] [-]"},
		{"", `"serviceAccountName":"pulls"`, "pulls [b a] [kube-api-access-*] [kube-api-access-*]"},
		{"", `"serviceAccountName":"pulls","imagePullSecrets":[{"name":"z"}]`, "pulls [z] [kube-api-access-*] [kube-api-access-*]"},
		{"", own, "default [] [v] [v]"},
		{"", own + `,"initContainers":[{"name":"i","image":"i"}]`, "default [] [v kube-api-access-*] [kube-api-access-* v]"},
		{"", `"volumes":[{"name":"kube-api-access-abc","emptyDir":{}}]`, "default [] [kube-api-access-abc] [kube-api-access-abc]"},
		{"", `"serviceAccountName":"no"`, `error looking up service account default/no: serviceaccount "no" not found`},
		{"", `"serviceAccountName":"strict","volumes":[{"name":"v","secret":{"secretName":"ok"}}]`, "strict [pull] [v kube-api-access-*] [kube-api-access-*]"},
		{"", `"serviceAccountName":"strict","volumes":[{"name":"v","secret":{"secretName":"no"}}]`, `volume with secret.secretName="no"` + refused + "secret"},
		{"", `"serviceAccountName":"strict","imagePullSecrets":[{"name":"pull"},{"name":"ok"}]`, `imagePullSecrets[1].name="ok"` + refused + "imagePullSecret"},
		{"", `"serviceAccountName":"strict","containers":[{"name":"c","image":"i","env":[` + env + `]}]`, `container c with envVar A referencing secret.secretName="no"` + refused + "secret"},
		{"", `"serviceAccountName":"strict","initContainers":[{"name":"i","image":"i","envFrom":[{"secretRef":{"name":"no"}}]}]`, `init container i with envFrom referencing secret.secretName="no"` + refused + "secret"},
		{mirror, `"nodeName":"n"`, " [] [] [-]"},
		{mirror, `"nodeName":"n","serviceAccountName":"off"`, "a mirror pod may not reference service accounts"},
		{mirror, `"nodeName":"n","imagePullSecrets":[{"name":"b"}]`, "a mirror pod may not reference secrets"},
		{mirror, `"nodeName":"n","containers":[{"name":"c","image":"i","env":[` + env + `]}]`, "a mirror pod may not reference secrets"},
		{mirror, `"nodeName":"n","volumes":[{"name":"v","csi":{"driver":"d","nodePublishSecretRef":{"name":"x"}}}]`, "a mirror pod may not reference secrets"},
		{mirror, `"nodeName":"n","volumes":[{"name":"v","cinder":{"volumeID":"x","secretRef":{"name":"x"}}}]`, "a mirror pod may not reference secrets"},
		{mirror, `"nodeName":"n","ephemeralContainers":[{"name":"d","image":"i","env":[` + env + `]}]`, "a mirror pod may not reference secrets"},
		{"", `"serviceAccountName":"a/b"`, `error looking up service account default/a/b: invalid resource name "a/b": [may not contain '/']`},
		{mirror, `"nodeName":"n","volumes":[{"name":"v","projected":{"sources":[{"serviceAccountToken":{"path":"t"}}]}}]`, "a mirror pod may not use ServiceAccountToken volume projections"},
	} {
		pod := &corev1.Pod{}
		if err := json.Unmarshal([]byte("{"+test.meta+`"spec":{`+test.spec+"}}"), pod); err != nil {
			t.Fatalf("%s: %v", test.spec, err)
		}
		pod.GenerateName = "p-"
		if pod.Spec.Containers == nil {
			pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "i"}}
		}
		got, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
		text := ""
		if err != nil {
			text = strings.TrimPrefix(err.Error(), `pods "p-" is forbidden: `)
		} else {
			text = access(got)
		}
		if text != test.want {
			t.Errorf("%s%s:\n%s, want\n%s", test.meta, test.spec, text, test.want)
		}
	}
	debugContainers(t, client)
}

// debugContainers come with an update, for which kube-apiserver answers 500.
func debugContainers(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	pods := client.CoreV1().Pods("default")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "debugged"}, Spec: corev1.PodSpec{ServiceAccountName: "strict", Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	pod, err := pods.Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	volume, err := json.Marshal(pod.Spec.Volumes[0].Projected)
	const want = `{"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},` +
		`{"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}},` +
		`{"downwardAPI":{"items":[{"path":"namespace","fieldRef":{"apiVersion":"v1","fieldPath":"metadata.namespace"}}]}}],"defaultMode":420}`
	if err != nil || string(volume) != want {
		t.Errorf("%s %v, want %s", volume, err, want)
	}
	if m := pod.Spec.Containers[0].VolumeMounts[0]; !m.ReadOnly {
		t.Errorf("the mount is %v", m)
	}
	add := func(secret string) error {
		pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
			Name: "e", Image: "i", EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: secret}}}},
		}}}
		_, err := pods.UpdateEphemeralContainers(t.Context(), pod.Name, pod, metav1.UpdateOptions{})
		return err
	}
	if err := add("no"); err == nil || !strings.Contains(err.Error(), `ephemeral container e with envFrom referencing secret.secretName="no" is not allowed because service account strict does not reference that secret`) {
		t.Error(err)
	}
	if err := add("ok"); err != nil {
		t.Error(err)
	}
	// A pod outlives its account.
	if err := client.CoreV1().ServiceAccounts("default").Delete(t.Context(), "strict", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := pods.Patch(t.Context(), pod.Name, "application/merge-patch+json", []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{}); err != nil {
		t.Error(err)
	}
}

// access shows what a pod got from its account.
func access(pod *corev1.Pod) string {
	name := func(volume string) string {
		if rest, ok := strings.CutPrefix(volume, "kube-api-access-"); ok && len(rest) == 5 {
			return "kube-api-access-*"
		}
		return volume
	}
	pulls, volumes, mounted := []string{}, []string{}, []string{}
	for _, s := range pod.Spec.ImagePullSecrets {
		pulls = append(pulls, s.Name)
	}
	for _, v := range pod.Spec.Volumes {
		volumes = append(volumes, name(v.Name))
	}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for _, c := range list {
			at := "-"
			for _, m := range c.VolumeMounts {
				if m.MountPath == accessPath {
					at = name(m.Name)
				}
			}
			mounted = append(mounted, at)
		}
	}
	account := pod.Spec.ServiceAccountName
	if pod.Spec.DeprecatedServiceAccount != account {
		account += "≠" + pod.Spec.DeprecatedServiceAccount
	}
	return fmt.Sprint(account, " ", pulls, " ", volumes, " ", mounted)
}

// The first pod of a namespace may come before its account. If none comes, the words are
// kube-apiserver's.
func TestServiceAccountLater(t *testing.T) {
	t.Parallel()
	r := start(t, func(o *server.Options) { o.Kinds, o.Controllers = server.KindsAll, nil })
	client, err := kubernetes.NewForConfig(r.config(t))
	if err != nil {
		t.Fatal(err)
	}
	create := func(ctx context.Context) error {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
		_, err := client.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{})
		return err
	}
	if err := create(t.Context()); err == nil || err.Error() != `pods "p" is forbidden: error looking up service account default/default: serviceaccount "default" not found` {
		t.Error(err)
	}
	done := make(chan error, 1)
	go func() { done <- create(t.Context()) }()
	if _, err := client.CoreV1().ServiceAccounts("default").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A container that a policy or a webhook adds gets the mount, too.
func TestServiceAccountOfInjected(t *testing.T) {
	t.Parallel()
	r := start(t, func(o *server.Options) { o.Kinds = server.KindsAll })
	client, err := kubernetes.NewForConfig(r.config(t))
	if err != nil {
		t.Fatal(err)
	}
	policies := client.AdmissionregistrationV1()
	policy := &admissionregistration.MutatingAdmissionPolicy{}
	if err := json.Unmarshal([]byte(`{"metadata":{"name":"sidecar"},"spec":{"reinvocationPolicy":"Never","failurePolicy":"Fail",
		"matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["pods"]}]},
		"mutations":[{"patchType":"JSONPatch","jsonPatch":{"expression":
			"[JSONPatch{op: 'add', path: '/spec/containers/-', value: Object.spec.containers{name: 'sidecar', image: 'i'}}]"}}]}}`), policy); err != nil {
		t.Fatal(err)
	}
	if _, err := policies.MutatingAdmissionPolicies().Create(t.Context(), policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &admissionregistration.MutatingAdmissionPolicyBinding{ObjectMeta: policy.ObjectMeta, Spec: admissionregistration.MutatingAdmissionPolicyBindingSpec{PolicyName: policy.Name}}
	if _, err := policies.MutatingAdmissionPolicyBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var got *corev1.Pod
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "p-"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
		var err error
		got, err = client.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{})
		return err == nil && len(got.Spec.Containers) == 2, nil // the policy does not know the kind at once
	}); err != nil {
		t.Fatal(err)
	}
	if text := access(got); text != "default [] [kube-api-access-*] [kube-api-access-* kube-api-access-*]" {
		t.Error(text)
	}
}
