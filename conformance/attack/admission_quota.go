package attack

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
)

// quotas are attempts to have more than one's quota.
var quotas = []Attack{{
	ID: "quota-writers", What: "create more ConfigMaps than the quota allows, by 32 writers at once",
	Run: func(ctx context.Context, s *Site) (Result, error) {
		return s.overrun(ctx, `"count/configmaps":"20"`, func(n int64) string {
			return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c%d"}}`, n)
		}, 20)
	},
}, {
	ID: "quota-bytes", What: "store more bytes than the quota allows, by 32 writers at once",
	Run: func(ctx context.Context, s *Site) (Result, error) {
		if s.IsKubernetes() {
			return Absent("it has no quota of bytes"), nil
		}
		return s.overrun(ctx, `"espalier.dev/storage-bytes":"100k"`, func(n int64) string {
			return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c%d"},"data":{"a":%q}}`, n, strings.Repeat("x", 10_000))
		}, 9)
	},
}, {
	ID: "quota-bytes-scale", What: "store more bytes than the quota allows, as managed fields that are written through a scale",
	Run: overrunByScale,
}}

// overrunByScale applies the scale of one object as many managers. The server notes each of them in the object.
func overrunByScale(ctx context.Context, s *Site) (Result, error) {
	if s.IsKubernetes() {
		return Absent("it has no quota of bytes"), nil
	}
	const group, room = "scaled.attack.example.com", 20_000
	if err := s.CRD(ctx, crdOf("sets."+group, "Namespaced", "sets", "Set", group)+"    subresources: {scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}\n"); err != nil {
		return Result{}, err
	}
	namespace, err := s.Namespace(ctx)
	if err != nil {
		return Result{}, err
	}
	user, err := s.UserWith(ctx, "scaler", namespace, rbacv1.PolicyRule{Verbs: []string{"patch"}, APIGroups: []string{group}, Resources: []string{"sets/scale"}})
	if err != nil {
		return Result{}, err
	}
	sets := "/apis/" + group + "/v1/namespaces/" + namespace + "/sets"
	for path, object := range map[string]string{
		sets: `{"apiVersion":"` + group + `/v1","kind":"Set","metadata":{"name":"s"},"spec":{"replicas":1}}`,
		"/api/v1/namespaces/" + namespace + "/resourcequotas": fmt.Sprintf(`{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"q"},"spec":{"hard":{"espalier.dev/storage-bytes":"%d"}}}`, room),
	} {
		if _, err := s.admin.Must(ctx, http.MethodPost, path, "application/json", object); err != nil {
			return Result{}, err
		}
	}
	time.Sleep(time.Second) // until the quota is in force
	written := 0
	for n := range 200 {
		code, text, err := user.Do(ctx, http.MethodPatch, fmt.Sprintf("%s/s/scale?fieldManager=%0100d", sets, n), "application/apply-patch+yaml",
			`{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"s"},"spec":{"replicas":1}}`)
		switch {
		case err != nil:
			return Result{}, err
		case code == http.StatusOK:
			written++
		case code != http.StatusForbidden && code != http.StatusConflict:
			return Result{}, fmt.Errorf("applying the scale: %d: %.300s", code, text)
		}
	}
	text, err := s.admin.Must(ctx, http.MethodGet, sets+"/s", "", "")
	switch {
	case err != nil:
		return Result{}, err
	case written == 0:
		return Result{}, fmt.Errorf("nothing could be applied")
	case len(text) > room+1000:
		return Succeeded("%d bytes where %d are allowed", len(text), room), nil
	}
	return Refused("%d of 200", written), nil
}

// overrun creates ConfigMaps from many sides in a namespace with a quota, and counts them.
func (s *Site) overrun(ctx context.Context, hard string, object func(int64) string, allowed int) (Result, error) {
	namespace, err := s.Namespace(ctx)
	if err != nil {
		return Result{}, err
	}
	path := "/api/v1/namespaces/" + namespace + "/"
	if _, err := s.admin.Must(ctx, http.MethodPost, path+"resourcequotas", "application/json",
		`{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"q"},"spec":{"hard":{`+hard+`}}}`); err != nil {
		return Result{}, err
	}
	user, err := s.UserWith(ctx, "writer", namespace, rbacv1.PolicyRule{Verbs: []string{"create", "delete"}, APIGroups: []string{""}, Resources: []string{"configmaps"}})
	if err != nil {
		return Result{}, err
	}
	if s.IsKubernetes() { // the controller that counts is another program, which does not run here
		if _, err := s.admin.Must(ctx, http.MethodPatch, path+"resourcequotas/q/status", "application/merge-patch+json",
			`{"status":{"hard":{`+hard+`},"used":{"count/configmaps":"0"}}}`); err != nil {
			return Result{}, err
		}
	}
	time.Sleep(time.Second) // until the quota is in force
	var n atomic.Int64
	var group sync.WaitGroup
	for range 32 {
		group.Go(func() {
			for range 4 {
				_, _, _ = user.Do(ctx, http.MethodPost, path+"configmaps", "application/json", object(n.Add(1)))
			}
		})
	}
	group.Wait()
	text, err := s.admin.Must(ctx, http.MethodGet, path+"configmaps", "", "")
	if err != nil {
		return Result{}, err
	}
	switch there := strings.Count(text, `"name":"c`); {
	case there > allowed:
		return Succeeded("%d objects where %d are allowed", there, allowed), nil
	case there == 0:
		return Result{}, fmt.Errorf("nothing could be created")
	default:
		return Refused("%d of 128", there), nil
	}
}
