package environment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/espalier-dev/espalier/conformance/launch"
)

// An Engine is what stores everything: etcd, or kine in front of a database.
type Engine string

// The engines. The zero value is Etcd, too.
const (
	Etcd     Engine = "etcd"
	SQLite   Engine = "sqlite"
	Postgres Engine = "postgres"
)

// engines are in the order of help texts.
var engines = []Engine{Etcd, SQLite, Postgres}

// EngineNamed returns the engine that is called name.
func EngineNamed(name string) (Engine, error) {
	if !slices.Contains(engines, Engine(name)) {
		return "", fmt.Errorf("unknown engine %q: use one of %v", name, engines)
	}
	return Engine(name), nil
}

// Kine reports whether kine is in front of the engine. Kine has a part of etcd's API only.
func (e Engine) Kine() bool { return e == SQLite || e == Postgres }

// String is the name of the engine.
func (e Engine) String() string { return string(cmp.Or(e, Etcd)) }

// program is the name of the process that replicas are connected to.
func (e Engine) program() string {
	if e.Kine() {
		return "kine"
	}
	return "etcd"
}

// fits returns an error if the engine cannot have such an environment.
func (o *Options) fits() error {
	switch {
	case !o.Engine.Kine():
		return nil
	case o.Members != 1:
		return fmt.Errorf("kine runs as one member, not as %d", o.Members)
	case o.Disk > 0:
		return errors.New("only members of etcd have file systems of their own")
	}
	return nil
}

// retained is how many revisions kine keeps when the harness compacts. The least that kine is made for is 1000, which is
// more than most runs write: watches and lists in pages would never be too old.
const retained = 100

// configureKine sets the command line of kine. It compacts when it is asked to, and never by itself: the record of a run
// must have read what is compacted.
func (m *Member) configureKine() error {
	w := m.environment
	source := launch.SQLite(filepath.Join(m.dir, "kine.db"))
	if w.database != nil {
		source = w.database.URL
	}
	argv, err := launch.KineCommand(strings.TrimPrefix(m.URL, "https://"), source)
	if err != nil {
		return err
	}
	m.command(append(argv, "--server-cert-file", w.file("etcd.crt"), "--server-key-file", w.file("etcd.key"), "--trusted-ca-file", w.file("ca.crt"),
		"--compact-interval", "0", "--compact-min-retain", fmt.Sprint(retained)))
	return nil
}

// startDatabase runs what is behind kine, if that is a process of its own. No fault hits it.
func (w *Environment) startDatabase(ctx context.Context) (err error) {
	if w.Engine == Postgres {
		w.database, err = launch.StartPostgres(ctx)
	}
	return err
}

// probe is the key of reads that ask for the revision. Kine always has this one. If it finds nothing, it answers with a
// revision that it remembers, which can be older than the last write.
func (w *Environment) probe() string {
	if w.Engine.Kine() {
		return "/registry/health"
	}
	return "x"
}

// Mark writes an empty key that does not exist yet, or that an attempt without an answer has written.
func (w *Environment) Mark(ctx context.Context, key string) error {
	if !w.Engine.Kine() {
		_, err := w.Etcd.Put(ctx, key, "")
		return err
	}
	_, err := w.Etcd.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", 0)).Then(clientv3.OpPut(key, "")).Else(clientv3.OpGet(key)).Commit()
	return err
}

// Remove deletes a key, or with a slash at its end everything below it.
func (w *Environment) Remove(ctx context.Context, key string) error {
	var below []clientv3.OpOption
	if strings.HasSuffix(key, "/") {
		below = append(below, clientv3.WithPrefix())
	}
	if !w.Engine.Kine() {
		_, err := w.Etcd.Delete(ctx, key, below...)
		return err
	}
	// Kine deletes one key at a time, at a revision. Servers may write the same keys, so that it takes several attempts.
	for ctx.Err() == nil {
		found, err := w.Etcd.Get(ctx, key, append(below, clientv3.WithKeysOnly())...)
		if err != nil || len(found.Kvs) == 0 {
			return err
		}
		for _, kv := range found.Kvs {
			name := string(kv.Key)
			if _, err := w.Etcd.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(name), "=", kv.ModRevision)).
				Then(clientv3.OpDelete(name)).Else(clientv3.OpGet(name)).Commit(); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}
