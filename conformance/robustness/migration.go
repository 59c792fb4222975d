package robustness

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/espalier-dev/espalier/conformance/robustness/environment"
)

const (
	// migrationKills is how many processes are killed during migrations.
	migrationKills = 50
	// migrated is how many objects there are, and migratedPage how many a page has at most.
	migrated, migratedPage = 10_000, 480
	migrationGroup         = "migrations.example.org"
	migrationPath          = "/apis/storagemigration.k8s.io/v1/storageversionmigrations"
	// migrationPatience is how long a migration may take after the last kill, on a slow machine.
	migrationPatience = 5 * time.Minute
)

// migration: objects are migrated to another storage version and back, and replicas and members of etcd are killed at random
// moments. The last migration must end by itself. No object may be lost or changed, and no more than a page be written twice for
// each kill.
func (p *play) migration(ctx context.Context) {
	m := &migrating{play: p, resource: fmt.Sprintf("crates%d", p.Number)}
	if !m.define(ctx, "v1", "") || !m.fill(ctx) {
		return
	}
	kills, rounds, versions := 0, 0, []string{"v2", "v1"}
	for kills < migrationKills && len(p.bad) == 0 && ctx.Err() == nil {
		to := versions[rounds%2]
		rounds++
		kills += m.round(ctx, rounds, to, migrationKills-kills)
		m.check(ctx, rounds, to, kills)
	}
	p.note("%d kills in %d migrations, %d objects were written more than once by one", kills, rounds, m.repeated)
	p.b.Ask(ctx, 1, http.MethodDelete, m.crdPath(), "", nil)
}

// migrating is what the case knows.
type migrating struct {
	*play
	resource string
	repeated int
}

func (m *migrating) crdPath() string {
	return "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + m.resource + "." + migrationGroup
}

func (m *migrating) folder() string {
	return fmt.Sprintf("%s/%s/%s/default/", environment.Prefix, migrationGroup, m.resource)
}

// define creates the CRD, or changes its storage version.
func (m *migrating) define(ctx context.Context, storage, at string) bool {
	var versions []any
	for _, v := range []string{"v1", "v2"} {
		versions = append(versions, map[string]any{"name": v, "served": true, "storage": v == storage, "schema": map[string]any{
			"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
	}
	metadata := map[string]any{"name": m.resource + "." + migrationGroup, "annotations": map[string]string{"espalier.dev/allow-deletion": "true"}}
	method, path := http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	if at != "" {
		metadata["resourceVersion"], method, path = at, http.MethodPut, m.crdPath()
	}
	body, err := json.Marshal(map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": metadata, "spec": map[string]any{
		"group": migrationGroup, "scope": "Namespaced", "versions": versions, "names": map[string]any{"plural": m.resource, "kind": "Crate"},
	}})
	if err != nil {
		m.fail("%v", err)
		return false
	}
	a := m.b.Ask(ctx, 1, method, path, "application/json", strings.NewReader(string(body)))
	return a.Code < 300
}

// crate is what etcd has.
func crate(version string, i int) string {
	return fmt.Sprintf(`{"apiVersion":"%s/%s","kind":"Crate","metadata":{"creationTimestamp":"2026-01-01T00:00:00Z","generation":1,"name":"c%06d","namespace":"default","uid":"u%d"},"spec":{"text":%q}}`+"\n",
		migrationGroup, version, i, i, strings.Repeat("x", 800))
}

func (m *migrating) fill(ctx context.Context) bool {
	for i := 0; i < migrated; {
		var ops []clientv3.Op
		for ; i < migrated && len(ops) < 100; i++ {
			ops = append(ops, clientv3.OpPut(fmt.Sprintf("%sc%06d", m.folder(), i), crate("v1", i)))
		}
		if _, err := m.environment.Etcd.Txn(ctx).Then(ops...).Commit(); err != nil {
			m.fail("filling etcd: %v", err)
			return false
		}
	}
	return true
}

// round migrates to a version, kills processes meanwhile, and returns how many.
func (m *migrating) round(ctx context.Context, number int, to string, most int) (kills int) {
	m.await(ctx, "the CRD with another storage version", func() bool {
		var crd struct {
			Metadata struct{ ResourceVersion string }
		}
		a := m.b.Ask(ctx, 1, http.MethodGet, m.crdPath(), "", nil)
		return a.Code == http.StatusOK && json.Unmarshal(a.Data, &crd) == nil && m.define(ctx, to, crd.Metadata.ResourceVersion)
	})
	name := fmt.Sprintf("%s-%d", m.resource, number)
	body := fmt.Sprintf(`{"apiVersion":"storagemigration.k8s.io/v1","kind":"StorageVersionMigration","metadata":{"name":%q,"annotations":{"migration.espalier.dev/keep-preimages":"1h"}},"spec":{"resource":{"group":%q,"resource":%q}}}`,
		name, migrationGroup, m.resource)
	m.await(ctx, "the migration is created", func() bool {
		code := m.b.Ask(ctx, 1, http.MethodPost, migrationPath, "application/json", strings.NewReader(body)).Code
		return code == http.StatusCreated || code == http.StatusConflict
	})
	limit := time.Now().Add(migrationPatience)
	for time.Now().Before(limit) && ctx.Err() == nil {
		switch condition := m.ended(ctx, name); {
		case condition == "Succeeded":
			return kills
		case condition != "":
			m.fail("the migration to %s is %s", to, condition)
			return kills
		}
		if kills >= most || !m.moves(ctx) {
			time.Sleep(200 * time.Millisecond) // without a pause, it would be a user whom the migration leaves alone
			continue
		}
		time.Sleep(rand.N(400 * time.Millisecond)) //nolint:gosec // any moment will do
		m.kill(ctx, kills)
		kills++
		limit = time.Now().Add(migrationPatience)
	}
	m.fail("the migration to %s has not ended %v after the last kill", to, migrationPatience)
	return kills
}

// ended is Succeeded or Failed, with the message; "" if neither.
func (m *migrating) ended(ctx context.Context, name string) string {
	a := m.b.Ask(ctx, 1, http.MethodGet, migrationPath+"/"+name, "", nil)
	var is struct {
		Status struct {
			Conditions []struct{ Type, Status, Message string }
		}
	}
	if a.Code != http.StatusOK || json.Unmarshal(a.Data, &is) != nil {
		return ""
	}
	for _, c := range is.Status.Conditions {
		switch {
		case c.Status == "True" && c.Type == "Succeeded":
			return c.Type
		case c.Status == "True" && c.Type == "Failed":
			return c.Type + ": " + c.Message
		}
	}
	return ""
}

// moves reports whether a migration writes objects within a moment.
func (m *migrating) moves(ctx context.Context) bool {
	revision := func() int64 {
		resp, err := m.environment.Etcd.Get(ctx, environment.Prefix+"/-espalier/migrations/", clientv3.WithPrefix(), clientv3.WithKeysOnly(),
			clientv3.WithSort(clientv3.SortByModRevision, clientv3.SortDescend), clientv3.WithLimit(1))
		if err != nil || len(resp.Kvs) == 0 {
			return 0
		}
		return resp.Kvs[0].ModRevision
	}
	before := revision()
	time.Sleep(30 * time.Millisecond)
	return revision() != before
}

// kill ends processes at once and starts them again: a member of etcd, or all replicas, one of them being the one that migrates.
func (m *migrating) kill(ctx context.Context, n int) {
	if n%3 == 2 {
		member := m.environment.Members[0]
		member.Kill()
		if err := member.Start(); err != nil {
			m.fail("etcd: %v", err)
			return
		}
		if err := m.environment.AwaitEtcd(ctx); err != nil {
			m.fail("etcd: %v", err)
		}
		return
	}
	for _, r := range m.environment.Replicas {
		r.Kill()
	}
	for _, r := range m.environment.Replicas {
		if err := r.Start(); err != nil {
			m.fail("%v", err)
			return
		}
	}
	for _, r := range m.environment.Replicas {
		if err := r.AwaitReady(ctx, environment.Patience); err != nil {
			m.fail("%v", err)
		}
	}
}

// check compares what etcd has with what it must have after some migrations.
func (m *migrating) check(ctx context.Context, rounds int, version string, kills int) {
	resp, err := m.environment.Etcd.Get(ctx, m.folder(), clientv3.WithPrefix())
	if err != nil {
		m.fail("reading etcd: %v", err)
		return
	}
	if len(resp.Kvs) != migrated {
		m.fail("%d objects, not %d", len(resp.Kvs), migrated)
		return
	}
	m.repeated = 0
	for i, kv := range resp.Kvs {
		if string(kv.Value) != crate(version, i) {
			m.fail("%s is %.200s", kv.Key, kv.Value)
			return
		}
		m.repeated += int(kv.Version) - 1 - rounds
	}
	if m.repeated > kills*migratedPage {
		m.fail("%d objects were written twice after %d kills: more than a page each", m.repeated, kills)
	}
}
