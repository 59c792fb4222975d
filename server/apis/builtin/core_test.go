package builtin

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestNamespaceIsDeletedInTwoSteps(t *testing.T) {
	e := start(t)
	for media, c := range e.clients() {
		t.Run(media, func(t *testing.T) {
			ctx, namespaces, name := context.Background(), c.CoreV1().Namespaces(), "by-"+media
			o, err := namespaces.Create(ctx, &corev1.Namespace{
				ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelMetadataName: "wrong"}},
				Status:     corev1.NamespaceStatus{Phase: corev1.NamespaceTerminating},
			}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if o.Status.Phase != corev1.NamespaceActive || len(o.Spec.Finalizers) != 1 || o.Spec.Finalizers[0] != corev1.FinalizerKubernetes || o.Labels[corev1.LabelMetadataName] != name {
				t.Errorf("new: %+v", o)
			}
			if data := e.stored("/namespaces/" + name); !strings.HasPrefix(string(data), string(magic)) {
				t.Errorf("etcd has %q", data)
			}
			o.Spec.Finalizers, o.Labels = nil, nil
			if o, err = namespaces.Update(ctx, o, metav1.UpdateOptions{}); err != nil || len(o.Spec.Finalizers) != 1 || o.Labels[corev1.LabelMetadataName] != name {
				t.Fatalf("updated: %+v, %v", o, err)
			}
			if err := namespaces.Delete(ctx, name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("other")}); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "Precondition failed: UID in precondition: other, UID in object meta: "+string(o.UID)) {
				t.Errorf("deleting another: %v", err)
			}
			if err := namespaces.Delete(ctx, name, metav1.DeleteOptions{DryRun: []string{"All"}}); err != nil {
				t.Error(err)
			}
			if o, err = namespaces.Get(ctx, name, metav1.GetOptions{}); err != nil || o.DeletionTimestamp != nil {
				t.Errorf("after a dry run: %+v, %v", o, err)
			}
			for range 2 {
				if err := namespaces.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
					t.Error(err)
				}
				if o, err = namespaces.Get(ctx, name, metav1.GetOptions{}); err != nil || o.DeletionTimestamp == nil || o.Status.Phase != corev1.NamespaceTerminating {
					t.Fatalf("marked: %+v, %v", o, err)
				}
			}
			o.Status.Conditions = []corev1.NamespaceCondition{{Type: corev1.NamespaceDeletionContentFailure, Status: corev1.ConditionTrue}}
			if o, err = namespaces.UpdateStatus(ctx, o, metav1.UpdateOptions{}); err != nil || len(o.Status.Conditions) != 1 {
				t.Errorf("status: %+v, %v", o, err)
			}
			o.Spec.Finalizers, o.Status.Conditions = nil, nil
			if o, err = namespaces.Finalize(ctx, o, metav1.UpdateOptions{}); err != nil || len(o.Status.Conditions) != 1 {
				t.Errorf("finalized: %+v, %v", o, err)
			}
			if _, err = namespaces.Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) || e.stored("/namespaces/"+name) != nil {
				t.Errorf("it is still there: %v", err)
			}
		})
	}
}

func TestNamespaceFinalizersOfBothSorts(t *testing.T) {
	e := start(t)
	e.Do("POST", "/api/v1/namespaces", `{"metadata":{"name":"n","finalizers":["example.com/keep"]},"spec":{"finalizers":["example.com/more"]}}`).Is(201).
		Has("spec.finalizers", []any{"example.com/more", "kubernetes"})
	e.Do("DELETE", "/api/v1/namespaces/n?propagationPolicy=Foreground", "").Is(200).Has("metadata.finalizers", []any{"example.com/keep", "foregroundDeletion"})
	e.Do("PUT", "/api/v1/namespaces/n/finalize", `{"metadata":{"name":"n","finalizers":["example.com/keep"]}}`).Is(200).Has("spec", map[string]any{})
	e.Do("GET", "/api/v1/namespaces/n", "").Is(200)
	e.Patch("merge", "/api/v1/namespaces/n", `{"metadata":{"finalizers":null}}`).Is(200)
	e.Do("GET", "/api/v1/namespaces/n", "").Is(404)
}

// Rights on a subresource are no rights to delete a namespace, or to have other
// policies select it.
func TestNamespaceSubresourcesKeepMetadata(t *testing.T) {
	e := start(t)
	e.Do("POST", "/api/v1/namespaces", `{"metadata":{"name":"n"}}`).Is(201)
	const stolen = `{"metadata":{"name":"n","labels":{"a":"b"},"annotations":{"c":"d"},"finalizers":["x.io/y"],"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"none","uid":"u"}]},"spec":{"finalizers":["kubernetes"]},"status":{"phase":"Active"}}`
	e.Patch("merge", "/api/v1/namespaces/n/status", stolen).Is(200)
	e.Do("PUT", "/api/v1/namespaces/n/status", stolen).Is(200)
	e.Do("PUT", "/api/v1/namespaces/n/finalize", stolen).Is(200)
	a := e.Do("GET", "/api/v1/namespaces/n", "").Is(200).
		Has("metadata.labels", map[string]any{"kubernetes.io/metadata.name": "n"}).
		Has("metadata.annotations", map[string]any{"c": "d"}) // as Kubernetes' conformance tests have it
	if a.At("metadata.finalizers") != nil || a.At("metadata.ownerReferences") != nil {
		t.Errorf("%v", a.At("metadata"))
	}
}

func TestNamespaceRules(t *testing.T) {
	e := start(t)
	e.Do("POST", "/api/v1/namespaces", `{"metadata":{"name":"a.b"}}`).Is(422).Mentions(`Namespace "a.b" is invalid: metadata.name: Invalid value: "a.b": must not contain dots`)
	e.Do("POST", "/api/v1/namespaces", `{"metadata":{"name":"a"},"spec":{"finalizers":["mine"]}}`).Is(422).Mentions(`spec.finalizers: Invalid value: "mine": name is neither a standard finalizer name nor is it fully qualified`)
	a := e.Do("POST", "/api/v1/namespaces", `{"metadata":{"generateName":"gen-"}}`).Is(201)
	a.Has("metadata.labels", map[string]any{"kubernetes.io/metadata.name": a.At("metadata.name")})
	name := a.At("metadata.name").(string)
	e.Patch("merge", "/api/v1/namespaces/"+name+"/status", `{"status":{"phase":"Terminating"}}`).Is(422).
		Mentions("status.Phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty")
	e.Do("GET", "/api/v1/namespaces?fieldSelector=status.phase%3DActive", "").Is(200).Has("items.0.metadata.name", name)
	e.Do("GET", "/api/v1/namespaces?fieldSelector=status.phase%3DTerminating", "").Is(200).Has("items", []any{})
	e.Do("GET", "/api/v1/namespaces?labelSelector=kubernetes.io/metadata.name%3D"+name, "").Is(200).Has("items.0.metadata.name", name)
	e.Patch("apply", "/api/v1/namespaces/applied?fieldManager=m", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"applied"}}`).Is(201).Has("status.phase", "Active")
}

// TestFinalizersHaveDomains: a new object has no finalizers but the standard ones and those
// with a domain. Leases and admission may have others, as in kube-apiserver.
func TestFinalizersHaveDomains(t *testing.T) {
	e := start(t)
	e.Do("POST", "/api/v1/namespaces", `{"metadata":{"name":"n"}}`).Is(201)
	const plain = `{"metadata":{"name":"f","finalizers":["plain"]}}`
	for _, path := range []string{"/api/v1/namespaces", "/api/v1/namespaces/n/configmaps", "/api/v1/namespaces/n/secrets", "/api/v1/namespaces/n/serviceaccounts", "/api/v1/namespaces/n/resourcequotas"} {
		e.Do("POST", path, plain).Is(422).Mentions(`metadata.finalizers[0]: Invalid value: "plain": name is neither a standard finalizer name nor is it fully qualified`)
	}
	e.Do("POST", "/apis/coordination.k8s.io/v1/namespaces/n/leases", plain).Is(201)
}

func TestDeleteReturnsTheObject(t *testing.T) {
	e := start(t)
	e.Do("POST", "/api/v1/namespaces", `{"metadata":{"name":"n"}}`).Is(201)
	for plural, kind := range map[string]string{"serviceaccounts": "ServiceAccount", "resourcequotas": "ResourceQuota", "configmaps": "Status"} {
		e.Do("POST", "/api/v1/namespaces/n/"+plural, `{"metadata":{"name":"a"}}`).Is(201)
		e.Do("DELETE", "/api/v1/namespaces/n/"+plural+"/a", "").Is(200).Has("kind", kind)
	}
}

func TestConfigMapRules(t *testing.T) {
	e := start(t)
	path := "/api/v1/namespaces/n/configmaps"
	e.Do("POST", path, `{"metadata":{"name":"A"},"data":{"a b":""}}`).Is(422).
		Mentions(`metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of`).
		Mentions(`data[a b]: Invalid value: "a b": a valid config key must consist of alphanumeric characters, '-', '_' or '.'`)
	e.Do("POST", path, `{"metadata":{"name":"a"},"data":{"k":""},"binaryData":{"k":""}}`).Is(422).Mentions(`data[k]: Invalid value: "k": duplicate of key present in binaryData`)
	e.Do("POST", path, `{"metadata":{"name":"a"},"data":{"k":"`+strings.Repeat("x", 1<<20+1)+`"}}`).Is(422).Mentions("Too long: may not be more than 1048576 bytes")
	e.Do("POST", path, `{"metadata":{"name":"a"},"data":{"k":"1"},"immutable":true}`).Is(201)
	e.Patch("merge", path+"/a", `{"data":{"k":"2"},"binaryData":{"b":""},"immutable":false}`).Is(422).
		Mentions("immutable: Forbidden: field is immutable when `immutable` is set").Mentions("data: Forbidden: field is").Mentions("binaryData: Forbidden: field is")
	e.Patch("merge", path+"/a", `{"metadata":{"labels":{"a":"b"}}}`).Is(200)
}

func TestSecretRules(t *testing.T) {
	e := start(t)
	path := "/api/v1/namespaces/n/secrets"
	e.Do("POST", path, `{"metadata":{"name":"a"},"data":{"a":"MQ==","b":"MQ=="},"stringData":{"a":"2"}}`).Is(201).
		Has("data", map[string]any{"a": "Mg==", "b": "MQ=="}).Has("stringData", nil).Has("type", "Opaque")
	e.Patch("strategic", path+"/a", `{"stringData":{"c":"3"}}`).Is(200).Has("data.c", "Mw==").Has("data.a", "Mg==")
	e.Patch("merge", path+"/a", `{"type":"other"}`).Is(422).Mentions(`type: Invalid value: "other": field is immutable`)
	e.Patch("merge", path+"/a", `{"immutable":true}`).Is(200)
	e.Patch("merge", path+"/a", `{"stringData":{"c":"4"}}`).Is(422).Mentions("data: Forbidden: field is immutable when `immutable` is set")
	for _, c := range []struct{ kind, data, text string }{
		{"kubernetes.io/service-account-token", ``, `metadata.annotations[kubernetes.io/service-account.name]: Required value`},
		{"kubernetes.io/dockercfg", ``, `data[.dockercfg]: Required value`},
		{"kubernetes.io/dockerconfigjson", `".dockerconfigjson":"{"`, `data[.dockerconfigjson]: Invalid value: "<secret contents redacted>": unexpected end of JSON input`},
		{"kubernetes.io/basic-auth", ``, `[data[username]: Required value, data[password]: Required value]`},
		{"kubernetes.io/ssh-auth", `"ssh-privatekey":""`, `data[ssh-privatekey]: Required value`},
		{"kubernetes.io/tls", `"tls.crt":""`, `data[tls.key]: Required value`},
	} {
		e.Do("POST", path, `{"metadata":{"name":"b"},"type":"`+c.kind+`","stringData":{`+c.data+`}}`).Is(422).Mentions(c.text)
	}
	e.Do("POST", path, `{"metadata":{"name":"b"},"type":"kubernetes.io/basic-auth","stringData":{"password":""}}`).Is(201)
	e.Do("POST", path, `{"metadata":{"name":"t","annotations":{"kubernetes.io/service-account.name":"x"}},"type":"kubernetes.io/service-account-token"}`).Is(201).Has("data", nil)
	e.Do("POST", path, `{"metadata":{"name":"c"},"type":"kubernetes.io/tls","stringData":{"tls.crt":"","tls.key":""}}`).Is(201).
		Warns("tls: failed to find any PEM data in certificate input")
	e.Do("GET", path+"?fieldSelector=type%3Dkubernetes.io/tls", "").Is(200).Has("items.0.metadata.name", "c").Has("items.1", nil)
}

func TestServiceAccountRules(t *testing.T) {
	e := start(t)
	path := "/api/v1/namespaces/n/serviceaccounts"
	e.Do("POST", path, `{"metadata":{"name":"A"}}`).Is(422).Mentions(`ServiceAccount "A" is invalid`)
	e.Do("POST", path, `{"metadata":{"name":"a","annotations":{"kubernetes.io/enforce-mountable-secrets":"true"}}}`).Is(201).
		Warns("metadata.annotations[kubernetes.io/enforce-mountable-secrets]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets")
	if e.stored("/serviceaccounts/n/a") == nil {
		t.Error("it is not where it should be")
	}
	e.Do("PUT", path+"/a", `{"metadata":{"name":"a"}}`).Is(200) // without a resourceVersion
	e.Do("PUT", path+"/b", `{"metadata":{"name":"b"}}`).Is(404)
}
