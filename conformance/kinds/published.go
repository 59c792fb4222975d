package kinds

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	v1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/conformance/kinds/answer"
)

// A publication has the OpenAPI documents that both servers publish. A document has the schemas of many kinds and is read once.
type publication struct {
	there, here *Client
	documents   map[string]map[string]any // name of the server and path → components
}

func (p *publication) components(ctx context.Context, c *Client, path string) (map[string]any, error) {
	key := c.Name + " " + path
	if found, ok := p.documents[key]; ok {
		return found, nil
	}
	response, data, err := c.send(ctx, http.MethodGet, path, "", "", nil)
	if err != nil {
		return nil, err
	}
	var found map[string]any
	if response.StatusCode == http.StatusOK {
		found = answer.Components(answer.Decode(data))
	}
	p.documents[key] = found
	return found, nil
}

// compare compares what the servers publish about a kind: its entries in discovery, its schema and the columns of its tables.
func (p *publication) compare(ctx context.Context, there, here *Kind) ([]answer.Miss, error) {
	misses := answer.Resources(there.Resource.Name, entry(there.Resource), entry(here.Resource))
	for _, name := range slices.Sorted(maps.Keys(there.Sub)) {
		if sub, ok := here.Sub[name]; ok {
			misses = append(misses, answer.Resources(there.Resource.Name+"/"+name, entry(there.Sub[name]), entry(sub))...)
		} else {
			misses = append(misses, answer.Miss{What: answer.Discovery, Rule: there.Resource.Name + "/" + name + " missing here"})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(here.Sub)) {
		if _, ok := there.Sub[name]; !ok {
			misses = append(misses, answer.Miss{What: answer.Discovery, Rule: there.Resource.Name + "/" + name + " only here"})
		}
	}
	path := "/openapi/v3" + base(there.Group, there.Version)
	t, err := p.components(ctx, p.there, path)
	if err != nil {
		return nil, err
	}
	h, err := p.components(ctx, p.here, path)
	if err != nil {
		return nil, err
	}
	misses = append(misses, answer.Schemas(there.Schema.Name, t, h)...)
	if !there.can("list") {
		return misses, nil
	}
	columns, err := p.columns(ctx, there)
	return append(misses, columns...), err
}

// entry is an entry of discovery as JSON.
func entry(r v1.APIResource) any {
	data, err := json.Marshal(r)
	if err != nil {
		return nil
	}
	return answer.Decode(data)
}

func (p *publication) columns(ctx context.Context, k *Kind) ([]answer.Miss, error) {
	var tables [2]map[string]any
	for i, c := range []*Client{p.there, p.here} {
		_, data, err := c.send(ctx, http.MethodGet, k.path()+"?limit=1", "", tableType, nil)
		if err != nil {
			return nil, err
		}
		tables[i], _ = answer.Decode(data).(map[string]any)
	}
	return answer.Columns(tables[0], tables[1]), nil
}
