package etcd

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

func TestDataSurvivesARestart(t *testing.T) {
	dir := t.TempDir()
	for i, want := range []string{"", "one", "two"} {
		began := time.Now()
		e, err := Start(t.Context(), Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("start %d: %v", i, time.Since(began))
		c := client(t, e)
		got, err := c.Get(t.Context(), "key")
		if err != nil {
			t.Fatal(err)
		}
		value := ""
		for _, kv := range got.Kvs {
			value = string(kv.Value)
		}
		if value != want {
			t.Errorf("start %d: got %q, want %q", i, value, want)
		}
		if _, err := c.Put(t.Context(), "key", []string{"one", "two", "three"}[i]); err != nil {
			t.Fatal(err)
		}
		if err := e.Stop(); err != nil {
			t.Error(err)
		}
	}
}

func TestAFolderHasOneEtcd(t *testing.T) {
	dir := t.TempDir()
	e, err := Start(t.Context(), Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	_, err = Start(t.Context(), Options{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("got %v", err)
	}
	if err := e.Stop(); err != nil {
		t.Error(err)
	}
	if e, err = Start(t.Context(), Options{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	if err := e.Stop(); err != nil {
		t.Error(err)
	}
}

func TestNothingIsLeftOfWhatIsFleeting(t *testing.T) {
	e, err := Start(t.Context(), Options{Fleeting: true})
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(e.sockets)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder of the sockets: %v, %v", info.Mode(), err)
	}
	for _, name := range []string{"client", "http", "peer"} {
		if _, err := os.Stat(filepath.Join(e.sockets, name)); err != nil {
			t.Errorf("a socket is not where nobody else may enter: %v", err)
		}
	}
	if err := e.Stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(e.sockets); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}
}

func client(t *testing.T, e *Etcd) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{e.Endpoint()}, Context: context.Background()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}
