package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/wire"
)

const (
	migrations = "/apis/storagemigration.k8s.io/v1/storageversionmigrations"
	maps       = "/api/v1/namespaces/space-00/configmaps"
	users      = 4

	// Phases with and without the migration take turns, and the medians of their 99th percentiles count: on a machine
	// with other work, one pause of 100 ms is one percent of a phase.
	phase    = 6 * time.Second
	rounds   = 7
	settling = 3 * time.Second // after the migration is paused or resumed
)

// migrated is what a migration did.
type migrated struct {
	rate         float64       // objects per second on an idle server
	alone, while time.Duration // the 99th percentile of users' requests, without and with the migration
}

// ratio is by how much users' requests take longer.
func (m *migrated) ratio() float64 { return float64(m.while) / float64(m.alone) }

// migrate makes another version the storage version, has the server rewrite the objects with their pre-images, and measures
// its rate alone, and the latency of users at half of the server's capacity.
func migrate(ctx context.Context, server *launch.Server, conn *wire.Conn) (*migrated, error) {
	crd := string(parcelCRD(before))
	v1 := crd[strings.Index(crd, `{"name":"v1"`):strings.LastIndex(crd, `]}}`)]
	v2 := strings.Replace(v1, `"name":"v1"`, `"name":"v2"`, 1)
	both := strings.Replace(crd, v1, strings.Replace(v1, `"storage":true`, `"storage":false`, 1)+","+v2, 1)
	if err := patch(ctx, conn, crds+"/"+name, both[strings.Index(both, `"spec":`):len(both)-1]); err != nil {
		return nil, err
	}
	if err := conn.Until(ctx, patience, http.StatusOK, http.MethodGet, "/apis/bench.espalier.dev/v2/namespaces/space-00/parcels?limit=1", nil); err != nil {
		return nil, err
	}
	body := `{"apiVersion":"storagemigration.k8s.io/v1","kind":"StorageVersionMigration","metadata":{"name":"parcels","annotations":{"migration.espalier.dev/keep-preimages":"1h"}},
		"spec":{"resource":{"group":"bench.espalier.dev","resource":"parcels"}}}`
	if _, err := conn.Expect(ctx, http.StatusCreated, http.MethodPost, migrations, []byte(body)); err != nil {
		return nil, err
	}
	m := &migrated{}
	var err error
	if m.rate, err = rate(ctx, conn); err != nil {
		return nil, err
	}
	if err := patch(ctx, conn, migrations+"/parcels", `"metadata":{"annotations":{"migration.espalier.dev/paused":"true"}}`); err != nil {
		return nil, err
	}
	launch.Pause(ctx, settling)
	conns, err := wire.DialAll(server.Config, users)
	if err != nil {
		return nil, err
	}
	full, err := load(ctx, conns, phase, 0)
	if err != nil {
		return nil, err
	}
	half := time.Duration(float64(phase) * users / (float64(len(full)) / 2))
	fmt.Printf("users: %.0f requests/s at most, measured at half of that\n", float64(len(full))/phase.Seconds())
	before, err := done(ctx, conn)
	if err != nil {
		return nil, err
	}
	var alone, while []time.Duration
	for range rounds {
		// Users are there before and after a migration is resumed. When they come to one that had the server to itself,
		// etcd has still to write what it was given: that is another question.
		for value, times := range map[string]*[]time.Duration{`"true"`: &alone, "null": &while} {
			if err := patch(ctx, conn, migrations+"/parcels", `"metadata":{"annotations":{"migration.espalier.dev/paused":`+value+`}}`); err != nil {
				return nil, err
			}
			if _, err := load(ctx, conns, settling, half); err != nil {
				return nil, err
			}
			took, err := load(ctx, conns, phase, half)
			if err != nil {
				return nil, err
			}
			*times = append(*times, wire.Percentile(took, 99))
			fmt.Printf("paused: %-6s p99 of %d requests %v\n", value, len(took), wire.Percentile(took, 99).Round(100*time.Microsecond))
		}
	}
	after, err := done(ctx, conn)
	if err != nil {
		return nil, err
	}
	if after == before {
		return nil, fmt.Errorf("nothing was migrated beside users: increase -objects")
	}
	fmt.Printf("%d objects migrated beside users, in %v\n", after-before, rounds*(phase+settling))
	m.alone, m.while = median(alone), median(while)
	return m, nil
}

func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

// patch sends members of a merge patch.
func patch(ctx context.Context, conn *wire.Conn, path, members string) error {
	status, _, answer, err := conn.Do(ctx, http.MethodPatch, path, []byte("{"+members+"}"), wire.Header{Name: "Content-Type", Value: "application/merge-patch+json"})
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("PATCH %s: %d %s", path, status, answer)
	}
	return err
}

// done is how many objects were migrated.
func done(ctx context.Context, conn *wire.Conn) (int64, error) {
	answer, err := conn.Expect(ctx, http.StatusOK, http.MethodGet, migrations+"/parcels", nil)
	if err != nil {
		return 0, err
	}
	var o struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(answer, &o); err != nil {
		return 0, err
	}
	var progress struct {
		Migrated int64 `json:"migrated"`
	}
	text := o.Metadata.Annotations["migration.espalier.dev/progress"]
	if text == "" {
		return 0, nil
	}
	return progress.Migrated, json.Unmarshal([]byte(text), &progress)
}

// rate measures how many objects are migrated per second: all of them, or as many as in a minute.
func rate(ctx context.Context, conn *wire.Conn) (float64, error) {
	began, first := time.Now(), int64(-1)
	for {
		launch.Pause(ctx, 500*time.Millisecond)
		n, err := done(ctx, conn)
		if err != nil {
			return 0, err
		}
		if first < 0 && n > 0 {
			began, first = time.Now(), n
		}
		if took := time.Since(began); first >= 0 && (took > time.Minute || n > int64(*objects)/2) || took > 2*time.Minute {
			return float64(n-first) / took.Seconds(), nil
		}
	}
}

// load sends requests of users, half of them writes: one after the other, or one in every period of each user. It returns
// how long each took; a request that begins late counts from when it should have begun.
func load(ctx context.Context, conns []*wire.Conn, d, period time.Duration) ([]time.Duration, error) {
	times, errs := make([][]time.Duration, len(conns)), make([]error, len(conns))
	end := time.Now().Add(d)
	var wg sync.WaitGroup
	for u, conn := range conns {
		wg.Go(func() {
			start := time.Now()
			for n := 0; ; n++ {
				began := time.Now()
				if period > 0 {
					began = start.Add(time.Duration(n)*period + time.Duration(u)*period/users)
					launch.Pause(ctx, time.Until(began))
				}
				if began.After(end) || errs[u] != nil || ctx.Err() != nil {
					return
				}
				errs[u] = request(ctx, conn, n)
				times[u] = append(times[u], time.Since(began))
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return slices.Concat(times...), ctx.Err()
}

// request reads or writes an object.
func request(ctx context.Context, conn *wire.Conn, n int) error {
	if n%2 == 0 {
		_, err := conn.Expect(ctx, http.StatusOK, http.MethodGet, "/apis/bench.espalier.dev/v1/namespaces/"+namespace(n)+fmt.Sprintf("/parcels/parcel-%08d", n%*objects), nil)
		return err
	}
	_, err := conn.Expect(ctx, http.StatusCreated, http.MethodPost, maps, []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"user-"},"data":{"a":"b"}}`))
	return err
}
