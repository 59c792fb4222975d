package kinds

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// fixtures are the objects in the files of a folder, by apiVersion and kind. What is no YAML, such as templates, is left out, and so are the
// namespaces of objects.
func fixtures(folder string) (map[string][]map[string]any, error) {
	all := map[string][]map[string]any{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		switch filepath.Ext(path) {
		case ".yaml", ".yml", ".json":
		default:
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return documents(data, func(object map[string]any, _ []byte, _ error) error {
			gather(all, object)
			return nil
		})
	})
	return all, err
}

// gather adds an object, or the items of a list.
func gather(all map[string][]map[string]any, object map[string]any) {
	version, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	if items, ok := object["items"].([]any); ok && strings.HasSuffix(kind, "List") {
		for _, item := range items {
			if o, ok := item.(map[string]any); ok {
				gather(all, o)
			}
		}
		return
	}
	if meta, ok := object["metadata"].(map[string]any); ok && version != "" && kind != "" {
		delete(meta, "namespace")
		all[version+" "+kind] = append(all[version+" "+kind], object)
	}
}
