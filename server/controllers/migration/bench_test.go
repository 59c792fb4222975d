package migration_test

import (
	"testing"
	"time"

	"github.com/espalier-dev/espalier/server/controllers/migration"
)

// BenchmarkMigrate measures how many objects of 1 KB are migrated per second, with
// pre-images, by an idle server: go test -bench Migrate -benchtime 50000x.
func BenchmarkMigrate(b *testing.B) {
	e := newEnv(b)
	e.define()
	filling := time.Now()
	e.fill(b.N)
	bare := float64(b.N) / time.Since(filling).Seconds() // what etcd can do, 100 a transaction
	e.storeIn("v1")
	b.ResetTimer()
	began := time.Now()
	e.migrate("widgets", map[string]string{migration.KeepAnnotation: "1h"})
	e.await("widgets", "Succeeded")
	b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "objects/s")
	b.ReportMetric(bare, "bare-puts/s")
}
