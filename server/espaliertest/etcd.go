package espaliertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/espalier-dev/espalier/server/etcd"
)

// shared is the etcd of all test servers of this process.
var shared struct {
	sync.Mutex
	users   int // running test servers, and Main
	servers int // started so far; numbers the prefixes
	etcd    *etcd.Etcd
	client  *clientv3.Client
}

// Main runs the tests of a package, for a TestMain:
//
//	func TestMain(m *testing.M) { espaliertest.Main(m) }
//
// It runs one etcd for all tests. Without it, tests that run one after the other start
// one each, which takes some hundredths of a second.
func Main(m *testing.M) {
	if err := hold(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "espaliertest:", err)
		os.Exit(1)
	}
	code := m.Run()
	if err := drop(); err != nil {
		fmt.Fprintln(os.Stderr, "espaliertest:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// claim returns an etcd, the prefix of a new test server in it, and how to release
// both.
func claim(ctx context.Context) (endpoint, prefix string, release func(context.Context) error, err error) {
	if err := hold(ctx); err != nil {
		return "", "", nil, err
	}
	shared.Lock()
	defer shared.Unlock()
	shared.servers++
	prefix = fmt.Sprintf("/%d", shared.servers)
	client := shared.client
	return shared.etcd.Endpoint(), prefix, func(ctx context.Context) error {
		_, err := client.Delete(ctx, prefix+"/", withPrefix...)
		return errors.Join(err, drop())
	}, nil
}

// withPrefix has a request be about all keys that begin so.
var withPrefix = []clientv3.OpOption{clientv3.WithPrefix()}

// hold starts etcd, if there is none, and keeps it until drop.
func hold(ctx context.Context) error {
	shared.Lock()
	defer shared.Unlock()
	if shared.users == 0 {
		e, err := etcd.Start(ctx, etcd.Options{Fleeting: true})
		if err != nil {
			return err
		}
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{e.Endpoint()}, Logger: zap.NewNop()})
		if err != nil {
			return errors.Join(err, e.Stop())
		}
		shared.etcd, shared.client = e, client
	}
	shared.users++
	return nil
}

// drop ends etcd with the last who has held it.
func drop() error {
	shared.Lock()
	defer shared.Unlock()
	if shared.users--; shared.users > 0 {
		return nil
	}
	return errors.Join(shared.client.Close(), shared.etcd.Stop())
}
