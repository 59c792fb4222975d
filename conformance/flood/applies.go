package flood

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/espalier-dev/espalier/conformance/launch"
)

const (
	applyKeys    = 150_000 // 2.5 MB
	applyAllowed = 19_000  // about as many as are accepted
	applyClients = 8       // in parallel
)

const applyPath = "/apis/applies.flood.example.com/v1/namespaces/default/boxes/"

// Applies floods a server with server-side applies of objects with very many keys. One client in four applies as many as are accepted.
func Applies(ctx context.Context, s *launch.Server, report func(format string, args ...any)) error {
	const schema = `{"type":"object","properties":{"spec":{"type":"object","additionalProperties":{"type":"integer"}}}}`
	if err := define(ctx, s, "applies.flood.example.com", "boxes", "Box", schema); err != nil {
		return fmt.Errorf("applies: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, floodTime)
	defer cancel()
	var large, allowed outcomes
	apply(ctx, s, &large, &allowed)
	report("applies: %d clients for %v: of %d keys %v; of %d keys %v", applyClients, floodTime, applyKeys, &large, applyAllowed, &allowed)
	if large.whole.Load()+large.refused.Load() == 0 || allowed.whole.Load() == 0 {
		return errors.New("applies: nothing was answered")
	}
	return nil
}

// applying is the flood without its preparation.
func applying(ctx context.Context, s *launch.Server) { apply(ctx, s, &outcomes{}, &outcomes{}) }

func apply(ctx context.Context, s *launch.Server, large, allowed *outcomes) {
	client, err := clientOf(s, "drowner")
	if err != nil {
		return
	}
	defer client.CloseIdleConnections()
	tooMany, most := boxOf(applyKeys), boxOf(applyAllowed)
	repeat(ctx, applyClients, func(ctx context.Context, worker int) {
		body, o := tooMany, large
		if worker%4 == 0 {
			body, o = most, allowed
		}
		name := fmt.Sprintf("box%d", worker)
		code, err := send(ctx, client, http.MethodPatch, s.URL+applyPath+name+"?fieldManager=flood&force=true",
			strings.Replace(body, "NAME", name, 1), "application/apply-patch+yaml", "application/json")
		if ctx.Err() == nil {
			o.add(code, err)
		}
	})
}

// boxOf is an object, whose name is to be filled in, with a number of keys.
func boxOf(keys int) string {
	var b strings.Builder
	b.WriteString(`{"apiVersion":"applies.flood.example.com/v1","kind":"Box","metadata":{"name":"NAME"},"spec":{`)
	for i := range keys {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"k%d":%d`, i, i)
	}
	return b.String() + "}}"
}
