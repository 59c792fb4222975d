package flood

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/espalier-dev/espalier/conformance/launch"
)

const (
	listObjects = 10_000 // of 2.7 KB: 27 MB of JSON
	listReaders = 20     // in parallel
)

const listPath = "/apis/lists.flood.example.com/v1/namespaces/default/pages"

// formats are what readers ask for.
var formats = []string{
	"application/yaml",
	"application/json;pretty=1",
	"application/yaml;as=Table;v=v1;g=meta.k8s.io",
	"application/json;as=Table;v=v1;g=meta.k8s.io",
	"application/yaml",
}

// list asks for lists of many objects in YAML, indented JSON and tables. One reader in five leaves in the middle.
func list(ctx context.Context, s *launch.Server, o *outcomes) {
	client, err := clientOf(s, "drowner")
	if err != nil {
		return
	}
	defer client.CloseIdleConnections()
	repeat(ctx, listReaders, func(ctx context.Context, worker int) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		path := listPath
		if strings.Contains(formats[worker%len(formats)], "Table") {
			path += "?includeObject=Object"
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+path, nil)
		if err != nil {
			return
		}
		req.Header.Set("Accept", formats[worker%len(formats)])
		resp, err := client.Do(req)
		if err != nil {
			o.add(0, err)
			return
		}
		defer resp.Body.Close()
		if worker%5 == 4 {
			_, err = io.CopyN(io.Discard, resp.Body, 1<<20)
		} else {
			_, err = io.Copy(io.Discard, resp.Body)
		}
		if ctx.Err() == nil {
			o.add(resp.StatusCode, err)
		}
	})
}

func prepareLists(ctx context.Context, s *launch.Server) error {
	if err := define(ctx, s, "lists.flood.example.com", "pages", "Page", `{"type":"object","x-kubernetes-preserve-unknown-fields":true}`); err != nil {
		return err
	}
	words := strings.Repeat("\"some words\",", 180) + `"end"`
	return each(ctx, listObjects, 16, func(ctx context.Context, i int) error {
		return must(ctx, s, listPath, fmt.Sprintf(`{"apiVersion":"lists.flood.example.com/v1","kind":"Page","metadata":{"name":"p%d"},"spec":{"words":[%s]}}`, i, words))
	})
}

// define creates a CRD and waits until it is served.
func define(ctx context.Context, s *launch.Server, group, plural, kind, schema string) error {
	if err := must(ctx, s, crds, makeCRD(group, plural, kind, schema)); err != nil {
		return err
	}
	client, err := s.HTTP()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	if err := until(ctx, client, http.MethodGet, s.URL+"/apis/"+group+"/v1/"+plural+"?limit=1", "", http.StatusOK); err != nil {
		return fmt.Errorf("%s.%s is not served: %w", plural, group, err)
	}
	return nil
}

func makeCRD(group, plural, kind, schema string) string {
	return fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"%[2]s.%[1]s"},"spec":{
		"group":%[1]q,"scope":"Namespaced","names":{"plural":%[2]q,"singular":%[3]q,"kind":%[4]q,"listKind":"%[4]sList"},
		"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":%[5]s}}]}}`, group, plural, strings.ToLower(kind), kind, schema)
}
