package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/conformance/wire"
)

// views are the places where a new CRD is looked for.
var views = []string{"served", "/apis/G/V", "/apis", "/openapi/v3"}

// patience is how long a CRD may take to be seen somewhere.
const patience = time.Minute

// until asks again and again, and returns how long after since the answer was yes.
func until(ctx context.Context, since time.Time, ask func() (bool, error)) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		ok, err := ask()
		if err != nil {
			return 0, err
		}
		if ok {
			return time.Since(since), nil
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
}

// probe creates new CRDs one after another and looks for each everywhere at once. It returns the times for every view, and for all of
// them together.
func (s *side) probe(ctx context.Context, n int, models []*benchCRD) (map[string][]time.Duration, error) {
	times := map[string][]time.Duration{}
	for range n {
		s.probed++
		d := models[s.probed%len(models)].in(fmt.Sprintf("probe%d", s.probed))
		took, err := s.look(ctx, d)
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", d.plural, d.group, err)
		}
		everywhere := time.Duration(0)
		for view, t := range took {
			times[view] = append(times[view], t)
			everywhere = max(everywhere, t)
		}
		times["everywhere"] = append(times["everywhere"], everywhere)
	}
	return times, nil
}

// look creates one CRD and returns when each view shows it, counted from the answer to the create.
func (s *side) look(ctx context.Context, d *benchCRD) (map[string]time.Duration, error) {
	body, err := d.body()
	if err != nil {
		return nil, err
	}
	aggregated := &page{conn: s.conns[2], path: "/apis", accept: "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}
	index := &page{conn: s.conns[3], path: "/openapi/v3"}
	asks := map[string]func() (bool, error){
		views[0]: func() (bool, error) { return isServed(ctx, s.conns[0], d) },
		views[1]: func() (bool, error) {
			status, _, answer, err := s.conns[1].Do(ctx, http.MethodGet, d.groupVersion(), nil)
			return status == http.StatusOK && bytes.Contains(answer, []byte(`"name":"`+d.plural+`"`)), err
		},
	}
	if s.shows {
		asks[views[2]] = func() (bool, error) { return aggregated.has(ctx, `"`+d.group+`"`) }
		asks[views[3]] = func() (bool, error) { return published(ctx, index, d) }
		// The pages as they are before: what is measured is the change.
		for _, p := range []*page{aggregated, index} {
			if _, err := p.has(ctx, d.group); err != nil {
				return nil, err
			}
		}
	}
	if _, err := s.conns[4].Expect(ctx, http.StatusCreated, http.MethodPost, crdsPath, body); err != nil {
		return nil, err
	}
	created := time.Now()
	took := make([]time.Duration, len(views))
	errs := make([]error, len(views))
	var wg sync.WaitGroup
	for i, view := range views {
		if ask := asks[view]; ask != nil {
			wg.Go(func() { took[i], errs[i] = until(ctx, created, ask) })
		}
	}
	wg.Wait()
	result := map[string]time.Duration{}
	for i, view := range views {
		if errs[i] != nil {
			return nil, fmt.Errorf("in %s: %w", view, errs[i])
		}
		if asks[view] != nil {
			result[view] = took[i]
		}
	}
	return result, nil
}

// A page is fetched again only when it has changed, as clients do.
type page struct {
	conn         *wire.Conn
	path, accept string
	etag         string
	body         []byte
}

func (p *page) has(ctx context.Context, text string) (bool, error) {
	var headers []wire.Header
	if p.accept != "" {
		headers = append(headers, wire.Header{Name: "Accept", Value: p.accept})
	}
	if p.etag != "" {
		headers = append(headers, wire.Header{Name: "If-None-Match", Value: p.etag})
	}
	status, header, answer, err := p.conn.Do(ctx, http.MethodGet, p.path, nil, headers...)
	if err != nil {
		return false, err
	}
	switch status {
	case http.StatusNotModified:
	case http.StatusOK:
		p.etag, p.body = header.Get("ETag"), append(p.body[:0], answer...)
	default:
		return false, fmt.Errorf("%s: %d", p.path, status)
	}
	return bytes.Contains(p.body, []byte(text)), nil
}

// published asks the index of documents for the group's, and the document for the kind.
func published(ctx context.Context, index *page, d *benchCRD) (bool, error) {
	key := d.groupVersion()[1:]
	if ok, err := index.has(ctx, `"`+key+`"`); !ok || err != nil {
		return false, err
	}
	var paths struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}
	if err := json.Unmarshal(index.body, &paths); err != nil {
		return false, err
	}
	document, err := index.conn.Expect(ctx, http.StatusOK, http.MethodGet, paths.Paths[key].ServerRelativeURL, nil)
	return bytes.Contains(document, []byte(`"kind":"`+d.kind+`"`)), err
}
