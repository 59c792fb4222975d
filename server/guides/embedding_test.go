package guides_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/server"
	"github.com/espalier-dev/espalier/server/etcd"
	"github.com/espalier-dev/espalier/server/local"
)

// The guide to embedding shows what is in this file; TestGuidesAreRun keeps them
// equal.

func Example_plane() {
	klog.SetSlogLogger(slog.New(slog.DiscardHandler)) // or the log of your program
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	plane, err := local.Start(ctx, local.Options{})
	if err != nil {
		log.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(plane.Config())
	if err != nil {
		log.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}}
	namespace, err = client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(namespace.Name, namespace.Status.Phase)
	if err := plane.Stop(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// team-a Active
}

var (
	crds = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	webs = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "webs"}
)

const webCRD = `{
  "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "webs.example.com"},
  "spec": {
    "group": "example.com", "scope": "Namespaced", "names": {"plural": "webs", "kind": "Web"},
    "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}}, "schema": {"openAPIV3Schema": {
      "type": "object",
      "properties": {
        "spec":   {"type": "object", "properties": {"image": {"type": "string"}}},
        "status": {"type": "object", "properties": {"phase": {"type": "string"}}}
      }
    }}}]
  }
}`

// define creates a CRD and returns when it is served.
func define(ctx context.Context, client dynamic.Interface, crd string) error {
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(crd), object); err != nil {
		return err
	}
	_, err := client.Resource(crds).Create(ctx, object, metav1.CreateOptions{})
	for err == nil || apierrors.IsAlreadyExists(err) {
		got, err := client.Resource(crds).Get(ctx, object.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		if established(got) {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}

func established(crd *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == "Established" && c["status"] == "True" {
			return true
		}
	}
	return false
}

// control says that every web is ready, until the context ends.
func control(ctx context.Context, client dynamic.Interface) error {
	informers := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	_, err := informers.ForResource(webs).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			web := object.(*unstructured.Unstructured).DeepCopy()
			if err := unstructured.SetNestedField(web.Object, "Ready", "status", "phase"); err != nil {
				return
			}
			_, err := client.Resource(webs).Namespace(web.GetNamespace()).UpdateStatus(ctx, web, metav1.UpdateOptions{})
			if err != nil && ctx.Err() == nil {
				log.Print(err)
			}
		},
	})
	if err != nil {
		return err
	}
	informers.Start(ctx.Done())
	<-ctx.Done()
	informers.Shutdown()
	return nil
}

// front passes requests on as the user that who knows them to be from.
func front(plane *local.ControlPlane, who func(*http.Request) (user string, ok bool)) (http.Handler, error) {
	config := plane.Config()
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	proxy := &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1, // events of watches do not wait
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			// Clients must not set the identity headers themselves.
			for name := range r.Out.Header {
				if strings.HasPrefix(name, "Impersonate-") || name == "Authorization" {
					r.Out.Header.Del(name)
				}
			}
			user, _ := who(r.In)
			r.Out.Header.Set("Impersonate-User", user)
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok := who(r); !ok {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		proxy.ServeHTTP(w, r)
	}), nil
}

// admit allows only images of our registry.
func admit(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 8<<20)).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "not an AdmissionReview", http.StatusBadRequest)
		return
	}
	var web struct{ Spec struct{ Image string } }
	err := json.Unmarshal(review.Request.Object.Raw, &web)
	answer := &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: err == nil && strings.HasPrefix(web.Spec.Image, "registry/")}
	if !answer.Allowed {
		answer.Result = &metav1.Status{Message: "images come from registry/"}
	}
	review.Request, review.Response = nil, answer
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(&review)
}

// ask has the server call a webhook for every web that is written.
func ask(ctx context.Context, client kubernetes.Interface, webhook string, ca []byte) error {
	none := admissionregistrationv1.SideEffectClassNone
	_, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "images"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:                    "images.example.com",
			ClientConfig:            admissionregistrationv1.WebhookClientConfig{URL: &webhook, CABundle: ca},
			SideEffects:             &none,
			AdmissionReviewVersions: []string{"v1"},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{webs.Group}, APIVersions: []string{"*"}, Resources: []string{webs.Resource}},
			}},
		}},
	}, metav1.CreateOptions{})
	return err
}

// permit gives a user all rights in a namespace.
func permit(ctx context.Context, client kubernetes.Interface, user, namespace string) error {
	_, err := client.RbacV1().RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{})
	return err
}

func Example_product() {
	if err := product(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// alice: shop is Ready
	// alice: admission webhook "images.example.com" denied the request: images come from registry/
	// anonymous: Unauthorized
}

func product() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "product-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	plane, err := local.Start(ctx, local.Options{Dir: dir, Configure: func(o *server.Options) {
		o.FieldValidation = "strict"
	}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	client, err := kubernetes.NewForConfig(plane.Config())
	if err != nil {
		return err
	}
	objects, err := dynamic.NewForConfig(plane.Config())
	if err != nil {
		return err
	}
	if err := define(ctx, objects, webCRD); err != nil {
		return err
	}

	// The controller ends before the server does.
	life, end := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- control(life, objects) }()
	defer func() { end(); err = errors.Join(err, <-ended) }()

	// One port for our own paths and for the API.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	api, err := front(plane, func(r *http.Request) (string, bool) {
		user, password, ok := r.BasicAuth()
		return user, ok && password == "sesame"
	})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/admit", admit)
	mux.Handle("/", api)
	pki := filepath.Join(dir, "pki")
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = web.ServeTLS(listener, filepath.Join(pki, "server.crt"), filepath.Join(pki, "server.key")) }()
	defer web.Close()

	address := "https://" + listener.Addr().String()
	if err := errors.Join(
		ask(ctx, client, address+"/admit", plane.Config().CAData),
		permit(ctx, client, "alice", metav1.NamespaceDefault),
	); err != nil {
		return err
	}
	ca := rest.TLSClientConfig{CAData: plane.Config().CAData}
	return use(ctx, &rest.Config{Host: address, TLSClientConfig: ca, Username: "alice", Password: "sesame"})
}

// use is what users do: a web, another one that is refused, and a request with
// the wrong password.
func use(ctx context.Context, config *rest.Config) error {
	alice, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	mine := alice.Resource(webs).Namespace(metav1.NamespaceDefault)
	// Rights are in effect soon after their binding was created.
	for err = create(ctx, mine, "shop", "registry/shop"); apierrors.IsForbidden(err); err = create(ctx, mine, "shop", "registry/shop") {
		time.Sleep(10 * time.Millisecond)
	}
	if err != nil {
		return err
	}
	phase := ""
	for ; phase == ""; time.Sleep(10 * time.Millisecond) {
		web, err := mine.Get(ctx, "shop", metav1.GetOptions{})
		if err != nil {
			return err
		}
		phase, _, _ = unstructured.NestedString(web.Object, "status", "phase")
	}
	fmt.Println("alice: shop is", phase)
	// A webhook is called soon after its configuration was created.
	for err = nil; err == nil; time.Sleep(10 * time.Millisecond) {
		err = create(ctx, mine, "moon", "moon/shop", metav1.DryRunAll)
	}
	fmt.Println("alice:", err)
	stranger := rest.CopyConfig(config)
	stranger.Password = "guess"
	anonymous, err := dynamic.NewForConfig(stranger)
	if err != nil {
		return err
	}
	_, err = anonymous.Resource(webs).List(ctx, metav1.ListOptions{})
	fmt.Println("anonymous:", apierrors.ReasonForError(err))
	return nil
}

func create(ctx context.Context, in dynamic.ResourceInterface, name, image string, dryRun ...string) error {
	_, err := in.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Web",
		"metadata": map[string]any{"name": name},
		"spec":     map[string]any{"image": image},
	}}, metav1.CreateOptions{DryRun: dryRun})
	return err
}

func Example_servers() {
	if err := servers(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// a: created team-a
	// b: namespaces "team-a" not found
	// ours: hello
}

// servers has two of them on one etcd. The second one is behind an HTTP server of
// ours.
func servers() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "servers-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	storage, err := etcd.Start(ctx, etcd.Options{Dir: filepath.Join(dir, "etcd")})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, storage.Stop()) }()
	a, err := local.Start(ctx, local.Options{Dir: dir, Etcd: storage.Endpoint(), Prefix: "/a"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Stop()) }()

	options, err := optionsOfB(storage.Endpoint(), dir)
	if err != nil {
		return err
	}
	b, err := server.New(ctx, options)
	if err != nil {
		return err
	}
	life, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- b.Run(life) }()
	defer func() { stop(); err = errors.Join(err, <-ended) }()

	address, end, err := behind(b.Handler(), filepath.Join(dir, "pki"))
	if err != nil {
		return err
	}
	defer end()
	config := a.Config() // b trusts the same CA
	config.Host = address
	return compare(ctx, a.Config(), config)
}

// optionsOfB are those of a server with the certificates of a plane in dir; your
// own do as well.
func optionsOfB(storage, dir string) (_ *server.Options, err error) {
	pki := filepath.Join(dir, "pki")
	o := server.NewOptions()
	o.Etcd.StorageConfig.Transport.ServerList = []string{storage}
	o.Etcd.StorageConfig.Prefix = "/b"
	o.Serving.ServerCert.CertKey.CertFile = filepath.Join(pki, "server.crt")
	o.Serving.ServerCert.CertKey.KeyFile = filepath.Join(pki, "server.key")
	o.Serving.ServerCert.CertDirectory = filepath.Join(dir, "b") // for the key that signs tokens
	o.Identity.ClientCAFile = filepath.Join(pki, "ca.crt")
	o.Run.ShutdownWatchTerminationGracePeriod = 0
	o.Version = "v1.2.3"
	o.Serving.Listener, err = net.Listen("tcp", "127.0.0.1:0")
	return o, err
}

// behind serves a handler, and a path of ours, on a port of ours.
func behind(api http.Handler, pki string) (address string, end func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/hello", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })
	mux.Handle("/", api)
	web := &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 10 * time.Second,
		// The API server verifies the certificate.
		TLSConfig: &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12},
	}
	go func() { _ = web.ServeTLS(listener, filepath.Join(pki, "server.crt"), filepath.Join(pki, "server.key")) }()
	return "https://" + listener.Addr().String(), func() { _ = web.Close() }, nil
}

// compare shows that the servers know nothing of each other.
func compare(ctx context.Context, ofA, ofB *rest.Config) error {
	a, errA := kubernetes.NewForConfig(ofA)
	b, errB := kubernetes.NewForConfig(ofB)
	if err := errors.Join(errA, errB); err != nil {
		return err
	}
	team, err := a.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	fmt.Println("a: created", team.Name)
	for err = errNotReady; err != nil && ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		_, err = b.RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
	}
	_, err = b.CoreV1().Namespaces().Get(ctx, "team-a", metav1.GetOptions{})
	fmt.Println("b:", err)
	said, err := b.RESTClient().Get().AbsPath("/hello").DoRaw(ctx)
	fmt.Println("ours:", string(said))
	return err
}

var errNotReady = errors.New("not ready yet")
