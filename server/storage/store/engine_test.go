package store_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/proxy/grpcproxy"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/etcdtest"
	"github.com/espalier-dev/espalier/server/storage/store"
)

// inFront serves etcd's API in front of etcd, with less than etcd has, and returns its URL.
func inFront(t *testing.T, change func(pb.KVServer) pb.KVServer, leases func(pb.LeaseServer) pb.LeaseServer) string {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{etcdtest.Endpoint(t)}})
	if err != nil {
		t.Fatal(err)
	}
	kv, _ := grpcproxy.NewKvProxy(client)
	lease, _ := grpcproxy.NewLeaseProxy(t.Context(), client)
	watch, _ := grpcproxy.NewWatchProxy(t.Context(), zap.NewNop(), client)
	s := grpc.NewServer()
	pb.RegisterKVServer(s, change(kv))
	pb.RegisterLeaseServer(s, leases(lease))
	pb.RegisterWatchServer(s, watch)
	pb.RegisterMaintenanceServer(s, grpcproxy.NewMaintenanceProxy(client))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve(listener) }()
	t.Cleanup(func() {
		s.Stop()
		_ = client.Close()
	})
	return "http://" + listener.Addr().String()
}

// careless does all transactions.
type careless struct{ pb.KVServer }

// Txn implements pb.KVServer.
func (c careless) Txn(ctx context.Context, r *pb.TxnRequest) (*pb.TxnResponse, error) {
	return c.KVServer.Txn(ctx, &pb.TxnRequest{Success: r.Success})
}

var errUnsupported = errors.New("etcdserver: unsupported operations in txn request")

// modest does what kube-apiserver asks for, as kine does.
type modest struct{ pb.KVServer }

// Range implements pb.KVServer.
func (l modest) Range(ctx context.Context, r *pb.RangeRequest) (*pb.RangeResponse, error) {
	if r.Serializable || r.MinModRevision != 0 || r.SortOrder != 0 {
		return nil, errUnsupported
	}
	return l.KVServer.Range(ctx, r)
}

// RangeStream implements pb.KVServer.
func (l modest) RangeStream(*pb.RangeRequest, pb.KV_RangeStreamServer) error {
	return status.Error(codes.Unimplemented, "unknown method RangeStream")
}

// DeleteRange implements pb.KVServer.
func (l modest) DeleteRange(context.Context, *pb.DeleteRangeRequest) (*pb.DeleteRangeResponse, error) {
	return nil, errUnsupported
}

// Put implements pb.KVServer.
func (l modest) Put(context.Context, *pb.PutRequest) (*pb.PutResponse, error) {
	return nil, errUnsupported
}

// Txn implements pb.KVServer.
func (l modest) Txn(ctx context.Context, r *pb.TxnRequest) (*pb.TxnResponse, error) {
	if len(r.Compare) != 1 || len(r.Success) != 1 || len(r.Failure) > 1 || r.Compare[0].Target != pb.Compare_MOD {
		return nil, errUnsupported
	}
	return l.KVServer.Txn(ctx, r)
}

// shortLived has leases that cannot be renewed.
type shortLived struct{ pb.LeaseServer }

// LeaseKeepAlive implements pb.LeaseServer.
func (shortLived) LeaseKeepAlive(pb.Lease_LeaseKeepAliveServer) error { return errUnsupported }

// LeaseTimeToLive implements pb.LeaseServer.
func (shortLived) LeaseTimeToLive(context.Context, *pb.LeaseTimeToLiveRequest) (*pb.LeaseTimeToLiveResponse, error) {
	return nil, errUnsupported
}

func asItIs[T any](v T) T { return v }

func at(url string) func(*store.Config) {
	return func(c *store.Config) { c.Transport.ServerList = []string{url} }
}

// An engine that ignores conditions would lose writes: the server does not start on it.
func TestEngineThatIgnoresConditions(t *testing.T) {
	url := inFront(t, func(kv pb.KVServer) pb.KVServer { return careless{kv} }, asItIs)
	c := store.Config{}
	c.Prefix = etcdtest.Prefix(t)
	at(url)(&c)
	b, err := store.Open(t.Context(), c)
	if !errors.Is(err, store.ErrIgnoresConditions) || !strings.Contains(err.Error(), "use etcd") {
		t.Errorf("opened: %v", err)
	}
	if err == nil {
		_ = b.Close()
	}
}

// An engine with less than etcd has is used as kube-apiserver uses etcd, and the log says what is given up.
func TestBoundedEngine(t *testing.T) {
	log := etcdtest.Capture(t)
	url := inFront(t, func(kv pb.KVServer) pb.KVServer { return modest{kv} }, func(l pb.LeaseServer) pb.LeaseServer { return shortLived{l} })
	b := open(t, at(url))
	if !b.Bounded() {
		t.Error("the engine passes for etcd")
	}
	for _, want := range []string{"This is not etcd", "several conditions", "renewing leases", "serializable reads", "--tenants"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %q:\n%s", want, log)
		}
	}
	st := open1(t, b, spec("v1"))
	create(t, st, gadget("v1", "a", 1))
	update(t, st, "a", func(o *object.Object) { o.SetLabels(map[string]string{"x": "y"}) })
	if n := len(list(t, st, "").Items); n != 1 {
		t.Errorf("%d objects", n)
	}
	if err := b.Healthy(t.Context()); err != nil {
		t.Error(err)
	}
	remove(t, st, "a")
	etcd, key := b.Client(), b.Key("own")
	for _, value := range []string{"1", "2"} {
		if _, err := etcd.Put(t.Context(), key, value); err != nil {
			t.Fatal(err)
		}
	}
	answer, err := etcd.Txn(t.Context()).Then(clientv3.OpGet(key), clientv3.OpDelete(key), clientv3.OpGet(key)).Commit()
	if err != nil || string(answer.Responses[0].GetResponseRange().Kvs[0].Value) != "2" || answer.Responses[1].GetResponseDeleteRange().Deleted != 1 || len(answer.Responses[2].GetResponseRange().Kvs) != 0 {
		t.Error(err, answer)
	}
	_, err = etcd.Txn(t.Context()).If(clientv3.Compare(clientv3.ModRevision(key), "=", 0), clientv3.Compare(clientv3.ModRevision(key+"2"), "=", 0)).Then(clientv3.OpPut(key, "3")).Commit()
	if err == nil || !strings.Contains(err.Error(), "use etcd") {
		t.Errorf("a transaction with two conditions: %v", err)
	}
	first, err := etcd.Grant(t.Context(), 10)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := etcd.Grant(t.Context(), 10); err != nil || second.ID == first.ID {
		t.Error(err, "two leases have the same number")
	}
}

// With etcd, the probe costs little and says nothing.
func TestProbeOfEtcd(t *testing.T) {
	log := etcdtest.Capture(t)
	began := time.Now()
	b := open(t)
	t.Log("Open took", time.Since(began))
	if b.Bounded() || strings.Contains(log.String(), "not etcd") {
		t.Errorf("etcd does not pass for etcd:\n%s", log)
	}
}
