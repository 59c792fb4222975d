package flood

import (
	"context"
	"errors"
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

// OpenAPI floods a server of many CRDs with requests for /openapi/v2 while a CRD changes five times a second.
func OpenAPI(ctx context.Context, s *launch.Server, report func(format string, args ...any)) error {
	if err := prepareOpenAPI(ctx, s); err != nil {
		return fmt.Errorf("openapi: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, floodTime)
	defer cancel()
	var o outcomes
	readOpenAPI(ctx, s, &o)
	report("openapi: %d readers of /openapi/v2 of %d CRDs while one changes, for %v: %v", openAPIReaders, openAPICRDs, floodTime, &o)
	if o.whole.Load() == 0 {
		return errors.New("openapi: no document was answered")
	}
	return nil
}

// asking is the flood without its preparation.
func asking(ctx context.Context, s *launch.Server) { readOpenAPI(ctx, s, &outcomes{}) }

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
	client, err := s.HTTP()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	return each(ctx, openAPICRDs, 4, func(ctx context.Context, i int) error {
		code, text, err := call(ctx, client, http.MethodPost, s.URL+crds,
			makeCRD(openAPIGroup, fmt.Sprintf("kinds%d", i), fmt.Sprintf("Kind%d", i), schema))
		if err == nil && code != http.StatusCreated {
			err = fmt.Errorf("a CRD was not created: %d %.200s", code, text)
		}
		return err
	})
}
