package flood

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/conformance/launch"
)

const (
	configMaps = "/api/v1/namespaces/default/configmaps"
	crds       = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
)

func configMap(name string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"a":"b"}}`, name)
}

// A request is one of a user who has nothing to do with the flood.
type request struct{ method, path, body string }

// look sends a user's requests, round after round, and looks at the server's memory, until ctx ends or the function that it returns is called. That
// function returns what was measured. It closes the client's connections.
func look(ctx context.Context, s *launch.Server, client *http.Client, pause time.Duration, round func(i int) []request) (stop func() Figures) {
	ctx, cancel := context.WithCancel(ctx)
	var f Figures
	var latencies []time.Duration
	var tasks sync.WaitGroup
	tasks.Go(func() {
		for ctx.Err() == nil {
			if now, err := launch.RSS(s.Pid); err == nil {
				f.Memory = max(f.Memory, now)
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
	tasks.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			for _, r := range round(i) {
				begin := time.Now()
				code, _, err := call(ctx, client, r.method, s.URL+r.path, r.body)
				if ctx.Err() != nil {
					return
				}
				latencies = append(latencies, time.Since(begin))
				if err != nil || code >= http.StatusBadRequest {
					f.Failures++
				}
			}
			time.Sleep(pause)
		}
	})
	return func() Figures {
		cancel()
		tasks.Wait()
		client.CloseIdleConnections()
		if f.Requests = len(latencies); f.Requests > 0 {
			slices.Sort(latencies)
			f.P99 = latencies[f.Requests*99/100]
		}
		return f
	}
}

// grant gives a user all rights, subject to flow control as other users' requests are.
func grant(ctx context.Context, s *launch.Server, user string) error {
	return must(ctx, s, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", fmt.Sprintf(
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"all-for-%[1]s"},
		"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":%[1]q}]}`, user))
}

// must creates something as the administrator.
func must(ctx context.Context, s *launch.Server, path, body string) error {
	client, err := s.HTTP()
	if err != nil {
		return err
	}
	code, text, err := call(ctx, client, http.MethodPost, s.URL+path, body)
	if err == nil && code != http.StatusCreated {
		err = fmt.Errorf("POST %s: %d: %.300s", path, code, text)
	}
	return err
}

// until repeats a request until it has one of the codes: a CRD and a role take a moment.
func until(ctx context.Context, client *http.Client, method, url, body string, codes ...int) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		code, text, err := call(ctx, client, method, url, body)
		if slices.Contains(codes, code) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s %s: %d %.300s: %w", method, url, code, text, errors.Join(err, ctx.Err()))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func clientOf(s *launch.Server, user string, groups ...string) (*http.Client, error) {
	config, err := s.Client(user, groups...)
	if err != nil {
		return nil, err
	}
	return rest.HTTPClientFor(config)
}

// call sends a request and returns the code and the text of the answer.
func call(ctx context.Context, client *http.Client, method, url, body string) (code int, text string, err error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return 0, "", fmt.Errorf("%s %s: %w", method, url, err)
	}
	return resp.StatusCode, string(answer), nil
}
