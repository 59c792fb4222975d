package scenarios

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	"github.com/espalier-dev/espalier/conformance/launch"
)

// speaking is client-go that says and understands protobuf only; what is answered in another form fails the test.
func speaking(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	config = rest.CopyConfig(config)
	config.ContentConfig = rest.ContentConfig{ContentType: runtime.ContentTypeProtobuf, AcceptContentTypes: runtime.ContentTypeProtobuf}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &listener{t: t, next: next} })
	return typedClient(t, config)
}

// A listener looks at the form of answers.
type listener struct {
	t    *testing.T
	next http.RoundTripper
	once sync.Once
}

func (l *listener) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := l.next.RoundTrip(req)
	if err == nil && !strings.HasPrefix(resp.Header.Get("Content-Type"), runtime.ContentTypeProtobuf) {
		l.once.Do(func() {
			l.t.Errorf("%s %s is answered as %q", req.Method, req.URL.Path, resp.Header.Get("Content-Type"))
		})
	}
	return resp, err
}

// A clientOf is what client-go has for the objects T of one resource, and their lists L.
type clientOf[T, L runtime.Object] interface {
	Create(ctx context.Context, object T, opts metav1.CreateOptions) (T, error)
	Update(ctx context.Context, object T, opts metav1.UpdateOptions) (T, error)
	Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error
	Get(ctx context.Context, name string, opts metav1.GetOptions) (T, error)
	List(ctx context.Context, opts metav1.ListOptions) (L, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
	Patch(ctx context.Context, name string, kind types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (T, error)
}

// A shelf is one resource in the hands of a test.
type shelf[T, L runtime.Object] struct {
	t      *testing.T
	client clientOf[T, L]
	name   string
	seen   []string // of the watch: type of event, and the step that it is of
	events watch.Interface
}

// metaOf is an object's metadata.
func metaOf(t *testing.T, object runtime.Object) metav1.Object {
	t.Helper()
	return must[metav1.Object](t)(meta.Accessor(object))
}

// step is a label that the verbs below change, so that one can tell who was there.
const step = "step"

// live takes an object through everything that a client can do, and looks at what is in etcd under key meanwhile.
func live[T, L runtime.Object](t *testing.T, etcd vault, key string, client clientOf[T, L], object T, change func(T)) {
	t.Helper()
	s := &shelf[T, L]{t: t, client: client, name: metaOf(t, object).GetName()}
	ctx, one := t.Context(), must[T](t)
	before := must[L](t)(client.List(ctx, metav1.ListOptions{}))
	version := must[metav1.ListInterface](t)(meta.ListAccessor(before)).GetResourceVersion()
	s.events = must[watch.Interface](t)(client.Watch(ctx, metav1.ListOptions{ResourceVersion: version, FieldSelector: "metadata.name=" + s.name}))
	defer s.events.Stop()

	metaOf(t, object).SetLabels(map[string]string{step: "create"})
	one(client.Create(ctx, object.DeepCopyObject().(T), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}))
	made := one(client.Create(ctx, object, metav1.CreateOptions{FieldManager: "maker"}))
	if m := metaOf(t, made); m.GetUID() == "" || m.GetCreationTimestamp().Unix() <= 0 || len(m.GetManagedFields()) == 0 || m.GetManagedFields()[0].Manager != "maker" {
		t.Errorf("made: %+v", m)
	}
	s.stored(etcd, key)
	s.update(change)
	metaOf(t, made).SetLabels(nil)
	if _, err := client.Update(ctx, made, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("an update of what has changed: %v", err)
	}
	s.patches(made)
	s.stored(etcd, key)
	s.listed()
	if err := client.Delete(ctx, s.name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.followed()
	one(client.Create(ctx, object, metav1.CreateOptions{}))
	all := any(client).(interface {
		DeleteCollection(context.Context, metav1.DeleteOptions, metav1.ListOptions) error
	})
	if err := all.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: step + "=create"}); err != nil {
		t.Error(err)
	}
	if n := etcd.count(key); n != 0 {
		t.Errorf("%d keys are left of %s", n, key)
	}
}

// update changes the object; the server may have written its status in the meantime.
func (s *shelf[T, L]) update(change func(T)) {
	s.t.Helper()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		object := must[T](s.t)(s.client.Get(s.t.Context(), s.name, metav1.GetOptions{}))
		before := object.DeepCopyObject()
		change(object)
		labels := metaOf(s.t, object).GetLabels()
		labels[step] = "update"
		metaOf(s.t, object).SetLabels(labels)
		updated, err := s.client.Update(s.t.Context(), object, metav1.UpdateOptions{})
		if err == nil && metaOf(s.t, updated).GetResourceVersion() == metaOf(s.t, before).GetResourceVersion() {
			s.t.Error("an update changes nothing")
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// patches changes the label in all the ways there are.
func (s *shelf[T, L]) patches(object T) {
	s.t.Helper()
	ctx, one := s.t.Context(), must[T](s.t)
	kinds := must[[]schema.GroupVersionKind](s.t)(first(scheme.Scheme.ObjectKinds(object)))
	apply := encode(s.t, map[string]any{"apiVersion": kinds[0].GroupVersion().String(), "kind": kinds[0].Kind,
		"metadata": map[string]any{"name": s.name, "labels": map[string]any{step: "apply"}}})
	for _, c := range []struct {
		word, patch string
		kind        types.PatchType
		options     metav1.PatchOptions
	}{
		{"merge", `{"metadata":{"labels":{"step":"merge"}}}`, types.MergePatchType, metav1.PatchOptions{}},
		{"json", `[{"op":"test","path":"/metadata/labels/step","value":"merge"},{"op":"replace","path":"/metadata/labels/step","value":"json"}]`, types.JSONPatchType, metav1.PatchOptions{}},
		{"strategic", `{"metadata":{"labels":{"step":"strategic"}}}`, types.StrategicMergePatchType, metav1.PatchOptions{}},
		{"apply", apply, types.ApplyPatchType, metav1.PatchOptions{FieldManager: "applier", Force: new(true)}},
	} {
		patched := one(s.client.Patch(ctx, s.name, c.kind, []byte(c.patch), c.options))
		if got := metaOf(s.t, patched).GetLabels()[step]; got != c.word {
			s.t.Errorf("after the patch %s the label is %q", c.word, got)
		}
	}
}

func first[A, B any](a A, _ B, err error) (A, error) { return a, err }

// listed demands that lists find the object, by its label, by its name, and as pages do.
func (s *shelf[T, L]) listed() {
	s.t.Helper()
	for _, options := range []metav1.ListOptions{{LabelSelector: step + "=apply"}, {FieldSelector: "metadata.name=" + s.name}, {LabelSelector: step, Limit: 1}} {
		s.settled(func(want T) (runtime.Object, string) {
			list := must[L](s.t)(s.client.List(s.t.Context(), options))
			items := must[[]runtime.Object](s.t)(meta.ExtractList(list))
			if len(items) != 1 {
				s.t.Fatalf("%d objects are listed with %+v", len(items), options)
			}
			return items[0], metaOf(s.t, items[0]).GetResourceVersion()
		})
	}
}

// settled compares the object with another view of it, as soon as both are of one resource version.
func (s *shelf[T, L]) settled(view func(want T) (runtime.Object, string)) {
	s.t.Helper()
	eventually(s.t, soon, "two views of an object are of one version", func() bool {
		want := must[T](s.t)(s.client.Get(s.t.Context(), s.name, metav1.GetOptions{}))
		got, version := view(want)
		if version != metaOf(s.t, want).GetResourceVersion() {
			return false
		}
		same(s.t, s.name, want, got)
		return true
	})
}

// followed demands that the watch has seen every step, in order, and the end.
func (s *shelf[T, L]) followed() {
	s.t.Helper()
	want := []string{"ADDED create", "MODIFIED update", "MODIFIED merge", "MODIFIED json", "MODIFIED strategic", "MODIFIED apply", "DELETED apply"}
	for limit := time.After(soon); len(s.seen) < len(want); {
		select {
		case event, ok := <-s.events.ResultChan():
			if object, fits := event.Object.(T); ok && fits {
				saw := string(event.Type) + " " + metaOf(s.t, object).GetLabels()[step]
				if saw != "MODIFIED create" { // the server has written a status
					s.seen = slices.Compact(append(s.seen, saw))
				}
				continue
			}
			s.t.Fatalf("the watch, after %q: %v, %v %T", s.seen, ok, event.Type, event.Object)
		case <-limit:
			s.t.Fatalf("the watch has seen %q only", s.seen)
		}
	}
	if !slices.Equal(s.seen, want) {
		s.t.Errorf("the watch has seen %q", s.seen)
	}
}

// stored demands that what is in etcd is the object as kube-apiserver would have it there: protobuf, without a resource version.
func (s *shelf[T, L]) stored(etcd vault, key string) {
	s.t.Helper()
	s.settled(func(want T) (runtime.Object, string) {
		kvs := must[*clientv3.GetResponse](s.t)(etcd.client.Get(s.t.Context(), etcd.prefix+key)).Kvs
		if len(kvs) != 1 || !strings.HasPrefix(string(kvs[0].Value), "k8s\x00") {
			s.t.Fatalf("%s in etcd: %.100q", key, kvs)
		}
		got, _, err := scheme.Codecs.UniversalDeserializer().Decode(kvs[0].Value, nil, nil)
		if err != nil {
			s.t.Fatal(err)
		}
		if version := metaOf(s.t, got).GetResourceVersion(); version != "" {
			s.t.Errorf("%s in etcd has the resource version %s", key, version)
		}
		version := strconv.FormatInt(kvs[0].ModRevision, 10)
		metaOf(s.t, got).SetResourceVersion(version)
		if _, direct := got.(T); !direct { // an event, which is stored as one of the other group
			if metaOf(s.t, got).GetUID() != metaOf(s.t, want).GetUID() {
				s.t.Errorf("%s in etcd is another object: %v", key, got)
			}
			return want, version
		}
		return got, version
	})
}

// same compares objects, whether or not they say of what kind they are.
func same(t *testing.T, what string, want, got runtime.Object) {
	t.Helper()
	want, got = want.DeepCopyObject(), got.DeepCopyObject()
	for _, object := range []runtime.Object{want, got} {
		object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	if a, b := encode(t, want), encode(t, got); a != b {
		t.Errorf("%s: it is\n%s\nnot\n%s", what, b, a)
	}
}

// vaultOf is what lies in etcd under a prefix.
func vaultOf(t *testing.T, prefix string) vault {
	t.Helper()
	return vault{t, etcdClient(t), prefix}
}

// own starts a server of its own for a test; namespaces have to exist in it.
func own(t *testing.T, flags ...string) (*launch.Server, vault) {
	t.Helper()
	needsDiscovery(t)
	at := prefix()
	return serve(t, launch.Espalier, at, flags...), vaultOf(t, at)
}
