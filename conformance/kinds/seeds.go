package kinds

import (
	"bufio"
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/yaml"
	syaml "sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/conformance/kinds/answer"
	"github.com/espalier-dev/espalier/conformance/kinds/generator"
)

// seeds are valid objects that use many fields. In their strings INDEX is the number of the object, HIGH and LOW are its bytes.
//
//go:embed seeds/*.yaml
var seeds embed.FS

// plant reads the seeds of a kind: those of its version first, then of its group, then of its name.
func (k *Kind) plant() error {
	for _, file := range []string{k.Resource.Name + "." + k.Version + "." + k.Group, k.Resource.Name + "." + k.Group, k.Resource.Name} {
		data, err := seeds.ReadFile("seeds/" + file + ".yaml")
		if err != nil {
			continue
		}
		if k.Seeds, err = parseSeeds(data); err != nil {
			return fmt.Errorf("reading seeds/%s.yaml failed: %w", file, err)
		}
		k.Known = generator.Known{}
		for _, s := range k.Seeds {
			s["apiVersion"], s["kind"] = k.apiVersion(), k.Resource.Kind
			k.Known.Learn(numbered(s, 0).(map[string]any))
		}
		return nil
	}
	return nil
}

func parseSeeds(data []byte) ([]map[string]any, error) {
	var out []map[string]any
	err := documents(data, func(object map[string]any, text []byte, err error) error {
		if err == nil && len(object) == 0 {
			err = fmt.Errorf("not an object: %s", bytes.TrimSpace(text))
		}
		out = append(out, object)
		return err
	})
	return out, err
}

// documents calls a function for each document of a file, with nil for one that is no object.
func documents(data []byte, each func(object map[string]any, text []byte, err error) error) error {
	reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		text, err := syaml.YAMLToJSONStrict(document)
		object, _ := answer.Decode(text).(map[string]any)
		if err := each(object, document, err); err != nil {
			return err
		}
	}
}

// seed returns a seed with a name of its own.
func (k *Kind) seed(which, index int) map[string]any {
	object := numbered(k.Seeds[which], index).(map[string]any)
	meta, _ := object["metadata"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
		object["metadata"] = meta
	}
	name, _ := meta["name"].(string)
	raw, _ := k.Seeds[which]["metadata"].(map[string]any)
	if original, _ := raw["name"].(string); name != "" && original == name {
		meta["name"] = name + "-" + strconv.Itoa(index)
	}
	return object
}

// numbered returns a copy with the number of the object in its strings and keys.
func numbered(value any, index int) any {
	replace := strings.NewReplacer("INDEX", strconv.Itoa(index), "HIGH", strconv.Itoa(index>>8&255), "LOW", strconv.Itoa(index&255)).Replace
	return replaced(value, replace)
}

func replaced(value any, replace func(string) string) any {
	switch v := value.(type) {
	case string:
		return replace(v)
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = replaced(e, replace)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = replaced(e, replace)
		}
		return out
	}
	return value
}
