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
	e.do("POST", "/api/v1/namespaces", `{"metadata":{"name":"n","finalizers":["example.com/keep"]},"spec":{"finalizers":["example.com/more"]}}`).is(201).
		has("spec.finalizers", []any{"example.com/more", "kubernetes"})
	e.do("DELETE", "/api/v1/namespaces/n?propagationPolicy=Foreground", "").is(200).has("metadata.finalizers", []any{"example.com/keep", "foregroundDeletion"})
	e.do("PUT", "/api/v1/namespaces/n/finalize", `{"metadata":{"name":"n","finalizers":["example.com/keep"]}}`).is(200).has("spec", map[string]any{})
	e.do("GET", "/api/v1/namespaces/n", "").is(200)
	e.patch("merge", "/api/v1/namespaces/n", `{"metadata":{"finalizers":null}}`).is(200)
	e.do("GET", "/api/v1/namespaces/n", "").is(404)
}

func TestNamespaceRules(t *testing.T) {
	e := start(t)
	e.do("POST", "/api/v1/namespaces", `{"metadata":{"name":"a.b"}}`).is(422).says(`Namespace "a.b" is invalid: metadata.name: Invalid value: "a.b": must not contain dots`)
	e.do("POST", "/api/v1/namespaces", `{"metadata":{"name":"a"},"spec":{"finalizers":["mine"]}}`).is(422).says(`spec.finalizers[0]: Invalid value: "mine": name is neither a standard finalizer name nor is it fully qualified`)
	a := e.do("POST", "/api/v1/namespaces", `{"metadata":{"generateName":"gen-"}}`).is(201)
	a.has("metadata.labels", map[string]any{"kubernetes.io/metadata.name": a.at("metadata.name")})
	name := a.at("metadata.name").(string)
	e.patch("merge", "/api/v1/namespaces/"+name+"/status", `{"status":{"phase":"Terminating"}}`).is(422).
		says("status.Phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty")
	e.do("GET", "/api/v1/namespaces?fieldSelector=status.phase%3DActive", "").is(200).has("items.0.metadata.name", name)
	e.do("GET", "/api/v1/namespaces?fieldSelector=status.phase%3DTerminating", "").is(200).has("items", []any{})
	e.do("GET", "/api/v1/namespaces?labelSelector=kubernetes.io/metadata.name%3D"+name, "").is(200).has("items.0.metadata.name", name)
	e.patch("apply", "/api/v1/namespaces/applied?fieldManager=m", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"applied"}}`).is(201).has("status.phase", "Active")
}

func TestConfigMapRules(t *testing.T) {
	e := start(t)
	path := "/api/v1/namespaces/n/configmaps"
	e.do("POST", path, `{"metadata":{"name":"A"},"data":{"a b":""}}`).is(422).
		says(`metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of`).
		says(`data[a b]: Invalid value: "a b": a valid config key must consist of alphanumeric characters, '-', '_' or '.'`)
	e.do("POST", path, `{"metadata":{"name":"a"},"data":{"k":""},"binaryData":{"k":""}}`).is(422).says(`data[k]: Invalid value: "k": duplicate of key present in binaryData`)
	e.do("POST", path, `{"metadata":{"name":"a"},"data":{"k":"`+strings.Repeat("x", 1<<20+1)+`"}}`).is(422).says("Too long: may not be more than 1048576 bytes")
	e.do("POST", path, `{"metadata":{"name":"a"},"data":{"k":"1"},"immutable":true}`).is(201)
	e.patch("merge", path+"/a", `{"data":{"k":"2"},"binaryData":{"b":""},"immutable":false}`).is(422).
		says("immutable: Forbidden: field is immutable when `immutable` is set").says("data: Forbidden: field is").says("binaryData: Forbidden: field is")
	e.patch("merge", path+"/a", `{"metadata":{"labels":{"a":"b"}}}`).is(200)
}

func TestSecretRules(t *testing.T) {
	e := start(t)
	path := "/api/v1/namespaces/n/secrets"
	e.do("POST", path, `{"metadata":{"name":"a"},"data":{"a":"MQ==","b":"MQ=="},"stringData":{"a":"2"}}`).is(201).
		has("data", map[string]any{"a": "Mg==", "b": "MQ=="}).has("stringData", nil).has("type", "Opaque")
	e.patch("strategic", path+"/a", `{"stringData":{"c":"3"}}`).is(200).has("data.c", "Mw==").has("data.a", "Mg==")
	e.patch("merge", path+"/a", `{"type":"other"}`).is(422).says(`type: Invalid value: "other": field is immutable`)
	e.patch("merge", path+"/a", `{"immutable":true}`).is(200)
	e.patch("merge", path+"/a", `{"stringData":{"c":"4"}}`).is(422).says("data: Forbidden: field is immutable when `immutable` is set")
	for _, c := range []struct{ kind, data, text string }{
		{"kubernetes.io/service-account-token", ``, `metadata.annotations[kubernetes.io/service-account.name]: Required value`},
		{"kubernetes.io/dockercfg", ``, `data[.dockercfg]: Required value`},
		{"kubernetes.io/dockerconfigjson", `".dockerconfigjson":"{"`, `data[.dockerconfigjson]: Invalid value: "<secret contents redacted>": unexpected end of JSON input`},
		{"kubernetes.io/basic-auth", ``, `[data[username]: Required value, data[password]: Required value]`},
		{"kubernetes.io/ssh-auth", `"ssh-privatekey":""`, `data[ssh-privatekey]: Required value`},
		{"kubernetes.io/tls", `"tls.crt":""`, `data[tls.key]: Required value`},
	} {
		e.do("POST", path, `{"metadata":{"name":"b"},"type":"`+c.kind+`","stringData":{`+c.data+`}}`).is(422).says(c.text)
	}
	e.do("POST", path, `{"metadata":{"name":"b"},"type":"kubernetes.io/basic-auth","stringData":{"password":""}}`).is(201)
	e.do("POST", path, `{"metadata":{"name":"t","annotations":{"kubernetes.io/service-account.name":"x"}},"type":"kubernetes.io/service-account-token"}`).is(201).has("data", nil)
	if w := e.do("POST", path, `{"metadata":{"name":"c"},"type":"kubernetes.io/tls","stringData":{"tls.crt":"","tls.key":""}}`).is(201).header.Get("Warning"); !strings.Contains(w, "tls: failed to find any PEM data in certificate input") {
		t.Errorf("the warning is %q", w)
	}
	e.do("GET", path+"?fieldSelector=type%3Dkubernetes.io/tls", "").is(200).has("items.0.metadata.name", "c").has("items.1", nil)
}

func TestServiceAccountRules(t *testing.T) {
	e := start(t)
	path := "/api/v1/namespaces/n/serviceaccounts"
	e.do("POST", path, `{"metadata":{"name":"A"}}`).is(422).says(`ServiceAccount "A" is invalid`)
	a := e.do("POST", path, `{"metadata":{"name":"a","annotations":{"kubernetes.io/enforce-mountable-secrets":"true"}}}`).is(201)
	if w := a.header.Get("Warning"); !strings.Contains(w, "deprecated in v1.32+") {
		t.Errorf("the warning is %q", w)
	}
	if e.stored("/serviceaccounts/n/a") == nil {
		t.Error("it is not where it should be")
	}
	e.do("PUT", path+"/a", `{"metadata":{"name":"a"}}`).is(200) // without a resourceVersion
	e.do("PUT", path+"/b", `{"metadata":{"name":"b"}}`).is(404)
}
