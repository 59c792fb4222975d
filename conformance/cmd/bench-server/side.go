package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/wire"
)

const (
	connections = 32
	listed      = "listed" // the namespace of the objects that are read, changed and listed
	made        = "made"   // the namespace of those that the measurement of create makes
	watched     = "watched"
)

// An operation is something whose rate is measured.
type operation struct {
	name    string
	workers int
	run     func(s *side, ctx context.Context, k *kind, worker int) error
}

var operations = []operation{
	{"create", connections, (*side).create},
	{"get", connections, (*side).get},
	{"update", connections, (*side).update},
	{"list", 1, (*side).list},
	{"watchlist", 1, (*side).watchList},
}

var errNotOffered = errors.New("this side has no such operation")

// A side is what is measured: a server or, with server nil, etcd itself.
type side struct {
	name    string
	pid     int
	server  *launch.Server
	conns   []*wire.Conn
	etcd    []*clientv3.Client
	value   string // what is put into etcd itself: the bytes of a stored object
	prefix  string
	program string // empty: the one of its kind
	objects int
	serial  atomic.Int64
	turns   [connections]int
	figures map[string]*figure // by operation, of the current kind
	memory  memory
}

// start starts the server and connects to it.
func (s *side) start(ctx context.Context, dir string, etcd *launch.Etcd) error {
	spec := launch.Spec{Etcd: etcd.URL, Prefix: s.prefix, Flags: []string{"--profiling=true"}, Namespaces: []string{listed, made, watched}}
	name := s.name
	if name == plain {
		name = ours
		spec.Flags = append(spec.Flags, "--enable-priority-and-fairness=false",
			"--disable-admission-plugins=NamespaceLifecycle,MutatingAdmissionPolicy,MutatingAdmissionWebhook,ValidatingAdmissionPolicy,ValidatingAdmissionWebhook")
	}
	if name == before {
		name = ours
	}
	var err error
	if spec.Kind, err = launch.Named(name); err != nil {
		return err
	}
	if spec.Binary = s.program; spec.Binary == "" {
		if spec.Binary, err = spec.Kind.Program(ctx, dir); err != nil {
			return err
		}
	}
	if s.server, err = launch.StartServer(ctx, spec); err != nil {
		return err
	}
	s.pid = s.server.Pid
	user := s.server.Config
	if s.name == ours || s.name == before {
		if user, err = s.ordinary(ctx); err != nil {
			return err
		}
	}
	s.conns, err = wire.DialAll(user, connections)
	return err
}

// ordinary returns a user whose rights come from a role.
func (s *side) ordinary(ctx context.Context) (*rest.Config, error) {
	admin, err := wire.DialAll(s.server.Config, 1)
	if err != nil {
		return nil, err
	}
	defer admin[0].Close()
	const binding = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"bench"},` +
		`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"bench"}]}`
	if _, err := admin[0].Expect(ctx, http.StatusCreated, http.MethodPost, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", []byte(binding)); err != nil {
		return nil, err
	}
	return s.server.Client("bench")
}

// memory is what a server takes for the objects of the current kind.
type memory struct{ heap, resident, size int64 }

// create makes an object with a new name.
func (s *side) create(ctx context.Context, k *kind, worker int) error {
	return s.put(ctx, k, worker, made, int(s.serial.Add(1)))
}

func (s *side) put(ctx context.Context, k *kind, worker int, namespace string, n int) error {
	name := object(n)
	if s.server == nil {
		key := s.key(k, namespace, name)
		resp, err := s.etcd[worker].Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", 0)).Then(clientv3.OpPut(key, s.value)).Commit()
		if err == nil && !resp.Succeeded {
			err = fmt.Errorf("%s is there already", key)
		}
		return err
	}
	_, err := s.conns[worker].Expect(ctx, http.StatusCreated, http.MethodPost, k.collection(namespace), k.object(namespace, name, n))
	return err
}

// get reads an object from etcd: without a resource version nothing may come from a cache that could be behind.
func (s *side) get(ctx context.Context, k *kind, worker int) error {
	name := object(rand.IntN(s.objects))
	if s.server == nil {
		resp, err := s.etcd[worker].Get(ctx, s.key(k, listed, name))
		if err == nil && len(resp.Kvs) != 1 {
			err = fmt.Errorf("no %s", name)
		}
		return err
	}
	_, err := s.conns[worker].Expect(ctx, http.StatusOK, http.MethodGet, k.collection(listed)+"/"+name, nil)
	return err
}

// update reads an object and writes it changed. Every worker has objects of its own: there are no conflicts.
func (s *side) update(ctx context.Context, k *kind, worker int) error {
	if s.server == nil {
		return errNotOffered
	}
	own := max(s.objects/connections, 1)
	name := object((worker + connections*(s.turns[worker]%own)) % s.objects)
	s.turns[worker]++
	path := k.collection(listed) + "/" + name
	old, err := s.conns[worker].Expect(ctx, http.StatusOK, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	changed, err := revised(old)
	if err != nil {
		return err
	}
	_, err = s.conns[worker].Expect(ctx, http.StatusOK, http.MethodPut, path, changed)
	return err
}

// list gets all objects of a namespace at once.
func (s *side) list(ctx context.Context, k *kind, worker int) error {
	if s.server == nil {
		return errNotOffered
	}
	size, err := s.conns[worker].Drain(ctx, k.collection(listed))
	if err == nil && size < s.memory.size*9/10 {
		err = fmt.Errorf("a list of %d bytes, where %d were expected", size, s.memory.size)
	}
	return err
}

const initialEvents = "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"

// watchList gets the same objects as events, up to the bookmark that ends them.
func (s *side) watchList(ctx context.Context, k *kind, worker int) error {
	if s.server == nil {
		return errNotOffered
	}
	added, ended := 0, false
	err := s.conns[worker].Watch(ctx, k.collection(listed)+initialEvents, nil, func(line []byte) bool {
		switch eventType(line) {
		case "ADDED":
			added++
		case "BOOKMARK":
			ended = true
		}
		return ended
	})
	if err == nil && added != s.objects {
		err = fmt.Errorf("a watch list of %d objects, not %d", added, s.objects)
	}
	return err
}

// eventType reads the type that every server writes first.
func eventType(line []byte) string {
	const before = `{"type":"`
	if len(line) < len(before)+8 || string(line[:len(before)]) != before {
		return ""
	}
	rest := line[len(before):]
	for i := range min(len(rest), 10) {
		if rest[i] == '"' {
			return string(rest[:i])
		}
	}
	return ""
}

// install makes the CRD and waits until its objects can be listed.
func (s *side) install(ctx context.Context, k *kind) error {
	if s.server == nil {
		return nil
	}
	const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	if _, err := s.conns[0].Expect(ctx, http.StatusCreated, http.MethodPost, path, k.crd); err != nil {
		return err
	}
	if err := s.conns[0].Until(ctx, time.Minute, http.StatusOK, http.MethodGet, k.collection(listed), nil); err != nil {
		return fmt.Errorf("%s is not served: %w", k.name, err)
	}
	return nil
}

// fill makes the objects that are read and listed, and takes the memory that they need.
func (s *side) fill(ctx context.Context, k *kind) error {
	var before int64
	var err error
	if s.server != nil {
		if before, err = s.server.Heap(ctx); err != nil {
			return err
		}
	}
	var next atomic.Int64
	errs := make([]error, connections)
	var wg sync.WaitGroup
	for w := range connections {
		wg.Go(func() {
			for n := int(next.Add(1)) - 1; n < s.objects && errs[w] == nil; n = int(next.Add(1)) - 1 {
				errs[w] = s.put(ctx, k, w, listed, n)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil || s.server == nil {
		return err
	}
	if s.memory.size, err = s.conns[0].Drain(ctx, k.collection(listed)); err != nil {
		return err
	}
	after, err := s.server.Heap(ctx)
	if err != nil {
		return err
	}
	s.memory.heap = after - before
	s.memory.resident, err = launch.RSS(s.pid)
	return err
}

func (s *side) key(k *kind, namespace, name string) string {
	return s.prefix + "/" + k.plural + "/" + namespace + "/" + name
}

func object(n int) string { return fmt.Sprintf("object-%07d", n) }
