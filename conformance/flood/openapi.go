package flood

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
)

const (
	openAPICRDs    = 500 // of about 25 KB
	openAPIReaders = 100 // in parallel
)

const openAPIGroup = "openapi.flood.example.com"

// readOpenAPI asks a server of many CRDs for /openapi/v2 while a CRD changes five times a second.
func readOpenAPI(ctx context.Context, s *launch.Server, o *outcomes) {
	client, err := clientOf(s, "drowner")
	if err != nil {
		return
	}
	defer client.CloseIdleConnections()
	repeat(ctx, openAPIReaders+1, func(ctx context.Context, worker int) {
		if worker == 0 {
			body := fmt.Sprintf(`[{"op":"replace","path":"/spec/versions/0/schema/openAPIV3Schema/description","value":"changed at %d"}]`, time.Now().UnixNano())
			_, _ = send(ctx, client, http.MethodPatch, s.URL+crds+"/kinds0."+openAPIGroup,
				body, "application/json-patch+json", "application/json")
			time.Sleep(200 * time.Millisecond)
			return
		}
		code, err := send(ctx, client, http.MethodGet, s.URL+"/openapi/v2", "", "", "application/json")
		if ctx.Err() == nil {
			o.add(code, err)
		}
	})
}

// send sends a request and drops the answer, which may be compressed.
func send(ctx context.Context, client *http.Client, method, url, body, contentType, accept string) (int, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Accept", accept)
	req.Header.Set("Accept-Encoding", "gzip") // so that it is not decompressed here
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

func prepareOpenAPI(ctx context.Context, s *launch.Server) error {
	var fields []string
	for i := range 150 {
		fields = append(fields, fmt.Sprintf(`"field%d":{"type":"string","maxLength":64,"description":"The field number %d, which is described at some length, as fields of CRDs are."}`, i, i))
	}
	schema := `{"type":"object","description":"A kind.","properties":{"spec":{"type":"object","properties":{` + strings.Join(fields, ",") + `}}}}`
	return each(ctx, openAPICRDs, 4, func(ctx context.Context, i int) error {
		return must(ctx, s, crds, makeCRD(openAPIGroup, fmt.Sprintf("kinds%d", i), fmt.Sprintf("Kind%d", i), schema))
	})
}
