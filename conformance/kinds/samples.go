package kinds

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/espalier-dev/espalier/conformance/kinds/answer"
	"github.com/espalier-dev/espalier/conformance/kinds/generator"
)

// A Sample is a generated object: one that a script would create.
type Sample struct {
	Kind   *Kind
	Index  int
	Object map[string]any
}

// Samples generates objects of the kinds that a server serves. They say their kind, and have a name if they had none: only a server
// knows the end of a generated one. Objects in another namespace than the one of the request are left out.
func Samples(ctx context.Context, c *Client, names []string, seed uint64, count int) ([]Sample, error) {
	all, err := Discover(ctx, c)
	if err != nil {
		return nil, err
	}
	selected, err := Select(all, names)
	if err != nil {
		return nil, err
	}
	documents := map[string]*generator.Document{}
	var list []Sample
	for _, k := range selected {
		if err := k.plant(); err != nil {
			return nil, err
		}
		if len(k.Seeds) == 0 || !k.can("get") {
			continue
		}
		if err := k.learn(ctx, c, documents); err != nil {
			return nil, err
		}
		if k.Resource.Namespaced {
			if err := c.namespace(ctx, k.namespace()); err != nil {
				return nil, err
			}
		}
		for i := range count {
			src := generator.NewSource(seed, k.ID, i)
			object, _ := generator.Mutate(src, k.seed(src.IntN(len(k.Seeds)), i), k.Schema, k.Known, generator.Number(src))
			if k.finish(object) {
				list = append(list, Sample{k, i, object})
			}
		}
	}
	return list, nil
}

// finish makes an object one that a file could hold. It reports false for one that a file could not.
func (k *Kind) finish(object map[string]any) bool {
	object["apiVersion"], object["kind"] = k.apiVersion(), k.Resource.Kind
	meta, ok := object["metadata"].(map[string]any)
	if !ok {
		return object["metadata"] == nil && k.Resource.Kind != "Event"
	}
	if k.Resource.Kind == "Event" && (meta["namespace"] == nil || meta["namespace"] == "") {
		meta["namespace"] = k.namespace() // the rules compare it with that of the object it is about
	}
	if generated, ok := meta["generateName"].(string); ok && generated != "" && (meta["name"] == nil || meta["name"] == "") {
		meta["name"] = "generated"
	}
	namespace, set := meta["namespace"]
	return !set || namespace == nil || namespace == "" || namespace == k.namespace()
}

// OpenAPI returns the OpenAPI v3 document that has the schema of a kind.
func (c *Client) OpenAPI(ctx context.Context, k *Kind) ([]byte, error) {
	return c.read(ctx, k.document())
}

// Create asks whether a server would create a sample. Fields says what it does with unknown and duplicate fields: Strict or Ignore.
func (c *Client) Create(ctx context.Context, s Sample, fields string) (*answer.Answer, error) {
	body, err := json.Marshal(s.Object)
	if err != nil {
		return nil, err
	}
	query := url.Values{"dryRun": {"All"}, "fieldValidation": {fields}}
	response, data, err := c.send(ctx, http.MethodPost, s.Kind.path()+"?"+query.Encode(), "application/json", "", body)
	if err != nil {
		return nil, err
	}
	return answer.Read(response, data), nil
}
