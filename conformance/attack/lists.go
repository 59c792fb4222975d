package attack

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/espalier-dev/espalier/conformance/launch"
)

// lists make the server build large answers and objects in memory.
var lists = []Attack{{
	ID: "C5-yaml-list", What: "take 1 GB with four lists of 5 MB in YAML",
	Run: func(ctx context.Context, s *Site) (Result, error) {
		_, path, reader, err := s.pages(ctx)
		if err != nil {
			return Result{}, err
		}
		grown, err := s.growth(ctx, func(ctx context.Context) error {
			var readers errgroup.Group
			for range 4 {
				readers.Go(func() error {
					code, _, err := reader.Do(ctx, http.MethodGet, path, "", "", "Accept", "application/yaml")
					if err == nil && code != http.StatusOK {
						err = fmt.Errorf("the list is answered with %d", code)
					}
					return err
				})
			}
			return readers.Wait()
		})
		if err != nil {
			return Result{}, err
		}
		return SucceededIf(grown > 1<<30, "%d MB", grown>>20), nil
	},
}, {
	ID: "C7-openapi-v2", What: "have /openapi/v2 rendered anew for each of 30 requests",
	Run: func(ctx context.Context, s *Site) (Result, error) {
		if _, _, _, err := s.pages(ctx); err != nil { // so that the document has just changed
			return Result{}, err
		}
		ask := func(times int) (time.Duration, error) {
			before, err := launch.CPU(s.Server.Pid)
			if err != nil {
				return 0, err
			}
			for range times {
				if code, text, err := s.admin.Do(ctx, http.MethodGet, "/openapi/v2", "", "", "Accept-Encoding", "identity"); err != nil || code != http.StatusOK {
					return 0, fmt.Errorf("%d %.200s: %w", code, text, err)
				}
			}
			after, err := launch.CPU(s.Server.Pid)
			return after - before, err
		}
		once, err := ask(1)
		if err != nil {
			return Result{}, err
		}
		often, err := ask(30)
		if err != nil {
			return Result{}, err
		}
		return SucceededIf(often > 10*max(once, 100*time.Millisecond), "%v of CPU, %v for the first", often, once), nil
	},
}, {
	ID: "C11-apply-keys", What: "take 2 s of CPU with one server-side apply of 60,000 keys",
	Run: func(ctx context.Context, s *Site) (Result, error) {
		group, path, user, err := s.pages(ctx)
		if err != nil {
			return Result{}, err
		}
		var keys strings.Builder
		for i := range 60_000 {
			fmt.Fprintf(&keys, `"k%d":%d,`, i, i)
		}
		return s.takesCPU(func() (int, string, error) {
			return user.Do(ctx, http.MethodPatch, path+"/large?fieldManager=attack", "application/apply-patch+yaml",
				fmt.Sprintf(`{"apiVersion":"%s/v1","kind":"Page","metadata":{"name":"large"},"spec":{%s"end":1}}`, group, keys.String()))
		})
	},
}, {
	ID: "C11-managed-fields", What: "take 2 s of CPU with one update that brings 100,000 managed fields in the wrong order",
	Run: func(ctx context.Context, s *Site) (Result, error) {
		group, path, user, err := s.pages(ctx)
		if err != nil {
			return Result{}, err
		}
		object := fmt.Sprintf(`{"apiVersion":"%s/v1","kind":"Page","metadata":{"name":"managed"%%s},"spec":{"a":1}}`, group)
		if _, err := user.Must(ctx, http.MethodPost, path, "application/json", fmt.Sprintf(object, "")); err != nil {
			return Result{}, err
		}
		fields := make([]string, 100_000)
		for i := range fields {
			fields[i] = fmt.Sprintf(`"f:%07d":{}`, len(fields)-i)
		}
		return s.takesCPU(func() (int, string, error) {
			return user.Do(ctx, http.MethodPatch, path+"/managed", "application/merge-patch+json", fmt.Sprintf(object,
				fmt.Sprintf(`,"managedFields":[{"manager":"m","operation":"Update","apiVersion":"%s/v1","fieldsType":"FieldsV1","fieldsV1":{%s}}]`, group, strings.Join(fields, ","))))
		})
	},
}, {
	ID: "deep-pretty", What: "take 500 MB with one GET of an object of 56 KB, 9000 levels deep, with indentation",
	Run: func(ctx context.Context, s *Site) (Result, error) {
		group, path, user, err := s.pages(ctx)
		if err != nil {
			return Result{}, err
		}
		object := fmt.Sprintf(`{"apiVersion":"%s/v1","kind":"Page","metadata":{"name":"deep"},"spec":%s[%s1]%s}`, group,
			strings.Repeat(`{"a":`, 9000), strings.Repeat("1,", 1000), strings.Repeat("}", 9000))
		if _, err := user.Must(ctx, http.MethodPost, path, "application/json", object); err != nil {
			return Result{}, err
		}
		answers := ""
		grown, err := s.growth(ctx, func(ctx context.Context) error {
			for query, accept := range map[string]string{"?pretty=true": "application/json", "": "application/yaml"} {
				code, text, err := user.Do(ctx, http.MethodGet, path+"/deep"+query, "", "", "Accept", accept)
				if err != nil {
					return err
				}
				answers += fmt.Sprintf("%s: %d, %d KB; ", accept, code, len(text)>>10)
			}
			return nil
		})
		if err != nil {
			return Result{}, err
		}
		return SucceededIf(grown > 500<<20, "%s%d MB", answers, grown>>20), nil
	},
}, {
	ID: "deep-apply", What: "take 2 s of CPU with one server-side apply of 18,000 fields on 9000 levels",
	Run: func(ctx context.Context, s *Site) (Result, error) {
		group, path, user, err := s.pages(ctx)
		if err != nil {
			return Result{}, err
		}
		return s.takesCPU(func() (int, string, error) {
			return user.Do(ctx, http.MethodPatch, path+"/deep?fieldManager=attack", "application/apply-patch+yaml",
				fmt.Sprintf(`{"apiVersion":"%s/v1","kind":"Page","metadata":{"name":"deep"},"spec":%s1%s}`, group,
					strings.Repeat(`{"l0":1,"a":`, 9000), strings.Repeat("}", 9000)))
		})
	},
}}

// cpuLimit is what one request may cost the server.
const cpuLimit = 2 * time.Second

// takesCPU is the result of a request that is to take more CPU of the server than cpuLimit.
func (s *Site) takesCPU(send func() (code int, text string, err error)) (Result, error) {
	before, err := launch.CPU(s.Server.Pid)
	if err != nil {
		return Result{}, err
	}
	code, _, err := send()
	if err != nil {
		return Result{}, err
	}
	after, err := launch.CPU(s.Server.Pid)
	if err != nil {
		return Result{}, err
	}
	return SucceededIf(after-before > cpuLimit, "%d after %v of CPU", code, after-before), nil
}

// pages creates a resource with 5 MB of objects, and a user who may do with them what he likes.
func (s *Site) pages(ctx context.Context) (group, path string, user *Client, err error) {
	group = s.Name("pages") + ".example.com"
	err = s.CRD(ctx, fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"pages.%[1]s"},"spec":{
		"group":%[1]q,"scope":"Namespaced","names":{"plural":"pages","singular":"page","kind":"Page","listKind":"PageList"},
		"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}]}}`, group))
	if err != nil {
		return "", "", nil, err
	}
	namespace, err := s.Namespace(ctx)
	if err != nil {
		return "", "", nil, err
	}
	path = "/apis/" + group + "/v1/namespaces/" + namespace + "/pages"
	words := strings.Repeat(`"some words",`, 4000) + `"end"`
	for i := range 100 {
		if _, err := s.admin.Must(ctx, http.MethodPost, path, "application/json",
			fmt.Sprintf(`{"apiVersion":"%s/v1","kind":"Page","metadata":{"name":"p%d"},"spec":{"words":[%s]}}`, group, i, words)); err != nil {
			return "", "", nil, err
		}
	}
	user, err = s.UserWith(ctx, "reader", namespace, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{"pages"}, Verbs: []string{"list", "get", "create", "patch"}})
	return group, path, user, err
}

// growth returns by how much the resident memory of the server grew at most while f ran.
func (s *Site) growth(ctx context.Context, f func(context.Context) error) (int64, error) {
	before, err := launch.RSS(s.Server.Pid)
	if err != nil {
		return 0, err
	}
	watching, stop := context.WithCancel(ctx)
	var peak atomic.Int64
	var tasks sync.WaitGroup
	tasks.Go(func() {
		for watching.Err() == nil {
			if now, err := launch.RSS(s.Server.Pid); err == nil && now > peak.Load() {
				peak.Store(now)
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
	err = f(ctx)
	stop()
	tasks.Wait()
	return peak.Load() - before, err
}
