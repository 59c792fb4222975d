package server_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/server"
	"github.com/espalier-dev/espalier/server/etcdtest"
)

// deaf is a link to etcd that can withhold the changes of some keys from watches. All
// else goes on.
type deaf struct {
	address string
	keys    []byte // what the keys contain

	mu   sync.Mutex
	open chan struct{} // closed while nothing is kept back
}

// frames passes messages of gRPC on as they are.
type frames struct{}

func (frames) Marshal(v any) ([]byte, error)      { return *v.(*[]byte), nil }
func (frames) Unmarshal(data []byte, v any) error { *v.(*[]byte) = bytes.Clone(data); return nil }
func (frames) Name() string                       { return "proto" }

func newDeaf(t *testing.T, keys string) *deaf {
	t.Helper()
	conn, err := grpc.NewClient(strings.TrimPrefix(etcdtest.Endpoint(t), "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(frames{}), grpc.MaxCallRecvMsgSize(64<<20)))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &deaf{address: "http://" + listener.Addr().String(), keys: []byte(keys), open: make(chan struct{})}
	close(d.open)
	s := grpc.NewServer(grpc.ForceServerCodec(frames{}), grpc.MaxRecvMsgSize(64<<20),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Millisecond, PermitWithoutStream: true}),
		grpc.UnknownServiceHandler(func(_ any, in grpc.ServerStream) error { return d.carry(conn, in) }))
	go func() { _ = s.Serve(listener) }()
	t.Cleanup(func() { s.Stop(); conn.Close() })
	return d
}

// carry passes a call on.
func (d *deaf) carry(conn *grpc.ClientConn, in grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(in)
	given, _ := metadata.FromIncomingContext(in.Context())
	ctx, cancel := context.WithCancel(metadata.NewOutgoingContext(in.Context(), given))
	defer cancel()
	out, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err != nil {
		return err
	}
	go func() {
		for {
			var message []byte
			if in.RecvMsg(&message) != nil {
				_ = out.CloseSend()
				return
			}
			if out.SendMsg(&message) != nil {
				return
			}
		}
	}()
	for {
		var message []byte
		err := out.RecvMsg(&message)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && method == "/etcdserverpb.Watch/Watch" {
			err = d.wait(ctx, message)
		}
		if err == nil {
			err = in.SendMsg(&message)
		}
		if err != nil {
			return err
		}
	}
}

// wait keeps changes back, and what comes after them on the same stream.
func (d *deaf) wait(ctx context.Context, message []byte) error {
	var told pb.WatchResponse
	if err := proto.Unmarshal(message, &told); err != nil {
		return err
	}
	for _, e := range told.Events {
		if bytes.Contains(e.Kv.Key, d.keys) {
			d.mu.Lock()
			open := d.open
			d.mu.Unlock()
			select {
			case <-open:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}

// block keeps changes back until the function is called that it returns.
func (d *deaf) block() (release func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open = make(chan struct{})
	return sync.OnceFunc(func() { close(d.open) })
}

// TestQuotaThatAReplicaHasNotHeardOf has limits added to a quota that limited other
// things, beside another one that limits the same. A replica that has heard of neither
// change may reserve in the one that it knows, and must not admit by it.
func TestQuotaThatAReplicaHasNotHeardOf(t *testing.T) {
	t.Parallel()
	l, link := &limited{}, newDeaf(t, "/resourcequotas/")
	prefix, keys := etcdtest.Prefix(t), t.TempDir()
	for _, endpoint := range []string{etcdtest.Endpoint(t), link.address} {
		r := start(t, func(o *server.Options) {
			o.Etcd.StorageConfig.Prefix, o.Serving.ServerCert.CertDirectory = prefix, keys
			o.Etcd.StorageConfig.Transport.ServerList = []string{endpoint}
		})
		l.replicas, l.typed, l.dynamic = append(l.replicas, r), append(l.typed, r.typed(t)), append(l.dynamic, r.dynamic(t))
	}
	define(t, l.dynamic[0])
	quotas := l.typed[0].CoreV1().ResourceQuotas("default")
	for name, hard := range map[string]corev1.ResourceList{
		"q":     {countWebs: resource.MustParse("100")},
		"other": {"count/configmaps": resource.MustParse("100"), "count/leases.coordination.k8s.io": resource.MustParse("0")},
	} {
		q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}
		if _, err := quotas.Create(t.Context(), q, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	behind, webs := l.replicas[1], l.replicas[1].url+"/apis/example.com/v1/namespaces/default/webs"
	create := func(name string) (int, string) {
		return send(t, behind.member(t, "system:masters"), "POST", webs, "application/json",
			fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Web","metadata":{"name":%q},"spec":{"host":"a.example.com"}}`, name))
	}
	eventually(t, func() bool {
		_, text := send(t, behind.member(t, "system:masters"), "POST", behind.url+"/apis/coordination.k8s.io/v1/namespaces/default/leases?dryRun=All", "application/json",
			`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"generateName":"l"}}`)
		return strings.Contains(text, "exceeded quota: other")
	})
	used := func() int64 {
		q, err := quotas.Get(t.Context(), "q", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		n := q.Status.Used[countWebs]
		return n.Value()
	}
	names := 0
	eventually(t, func() bool { // the replica knows this one, too
		names++
		code, text := create(fmt.Sprintf("before-%d", names))
		if code != http.StatusCreated {
			t.Fatalf("%d %s", code, text)
		}
		return used() > 0
	})

	release := link.block()
	defer release()
	other, err := quotas.Get(t.Context(), "other", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	other.Spec.Hard[countWebs] = resource.MustParse("0")
	if _, err := quotas.Update(t.Context(), other, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool {
		other, err := quotas.Get(t.Context(), "other", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		_, inForce := other.Status.Hard[countWebs]
		return inForce
	})
	if code, text := create("unheard"); code != http.StatusServiceUnavailable || !strings.Contains(text, "NothingWritten") {
		t.Errorf("admitted by what the replica knows: %d %s", code, text)
	}
	release()
	eventually(t, func() bool {
		code, text := create("heard")
		if code == http.StatusCreated {
			t.Fatal("admitted")
		}
		return code == http.StatusForbidden && strings.Contains(text, "exceeded quota: other")
	})
	if n := l.count(t); n != names {
		t.Errorf("%d objects are there, not %d", n, names)
	}
}

// TestLimitUnderWriters has a limit come into force while objects are created: none of
// them is left out of its count.
func TestLimitUnderWriters(t *testing.T) {
	testLimitUnderWriters(t, startLimited(t, 2, corev1.ResourceList{}))
}

// TestLimitUnderWritersBesideAnUnreadableQuota has another namespace with a quota that
// cannot be read: no replica that has started since has an informer that tells of quotas.
func TestLimitUnderWritersBesideAnUnreadableQuota(t *testing.T) {
	prefix := etcdtest.Prefix(t)
	etcd, _ := etcdtest.Client(t)
	key := prefix + "/resourcequotas/elsewhere/bad"
	if _, err := etcd.Put(t.Context(), key, "garbage"); err != nil {
		t.Fatal(err)
	}
	l := startLimitedAt(t, prefix, 2, corev1.ResourceList{"configmaps": resource.MustParse("1")})
	for i := range 2 { // what is deleted makes room
		maps := l.typed[i].CoreV1().ConfigMaps("default")
		eventually(t, func() bool {
			_, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "m"}}, metav1.CreateOptions{})
			return err == nil
		})
		if err := maps.Delete(t.Context(), "m", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	testLimitUnderWriters(t, l)
	if answer, err := etcd.Get(t.Context(), key); err != nil || len(answer.Kvs) != 1 {
		t.Errorf("the quota has gone: %v, %v", answer, err)
	}
}

func testLimitUnderWriters(t *testing.T, l *limited) {
	t.Helper()
	quotas := l.typed[0].CoreV1().ResourceQuotas("default")
	for round := range 2 {
		var created atomic.Int64
		writing, stop := context.WithCancel(t.Context())
		defer stop()
		var writers sync.WaitGroup
		for i := range 6 {
			writers.Go(func() {
				for n := 0; writing.Err() == nil; n++ {
					w := web(fmt.Sprintf("w-%d-%d-%d", round, i, n), "a.example.com")
					_, err := l.dynamic[i%2].Resource(webs).Namespace("default").Create(t.Context(), w, metav1.CreateOptions{})
					if err == nil {
						created.Add(1)
					} else if !apierrors.IsConflict(err) {
						t.Error(err)
					}
				}
			})
		}
		eventually(t, func() bool { return created.Load() > 20 })
		name := fmt.Sprintf("limit-%d", round)
		limit := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{countWebs: resource.MustParse("1000000")}}}
		if _, err := quotas.Create(t.Context(), limit, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		used := func() int64 {
			q, err := quotas.Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			n := q.Status.Used[countWebs]
			return n.Value()
		}
		eventually(t, func() bool { return used() > 0 })
		stop()
		writers.Wait()
		if n, used := int64(l.count(t)), used(); used < n {
			t.Errorf("%d objects are there, and %d are counted", n, used)
		}
	}
}
