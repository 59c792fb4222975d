package crdinstall

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/espalier-dev/espalier/crd/manifest"
)

// A Definition is a CustomResourceDefinition to be installed.
type Definition struct {
	Name   string
	Source string // where it is from, for messages
	JSON   []byte
	// Beta is set for one of apiextensions.k8s.io/v1beta1.
	Beta bool
}

// Resources returns the served resources of the CRD, as group/version/plural. For a CRD of
// v1beta1, which has another form, the list may be incomplete.
func (d *Definition) Resources() ([]string, error) {
	var read struct {
		Spec struct {
			Group    string
			Names    struct{ Plural string }
			Versions []struct {
				Name   string
				Served bool
			}
		}
	}
	if err := json.Unmarshal(d.JSON, &read); err != nil {
		return nil, err
	}
	var served []string
	for _, v := range read.Spec.Versions {
		if v.Served {
			served = append(served, read.Spec.Group+"/"+v.Name+"/"+read.Spec.Names.Plural)
		}
	}
	return served, nil
}

// ErrNone is the error for files without a CRD.
var ErrNone = errors.New("there is no CustomResourceDefinition in it")

// Read returns the CRDs in files, in folders and their subfolders, and in files that match
// patterns. It skips other objects; a name that comes twice is an error.
func Read(paths ...string) ([]Definition, error) {
	files, err := manifest.Expand(paths, nil)
	if err != nil {
		return nil, err
	}
	found := make([][]Definition, len(files))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, name := range files {
		group.Go(func() (err error) {
			found[i], err = read(name)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	all := slices.Concat(found...)
	if len(all) == 0 {
		return nil, fmt.Errorf("%q: %w", paths, ErrNone)
	}
	return all, unique(all)
}

func read(name string) ([]Definition, error) {
	file, err := manifest.Open(name, nil)
	if err != nil {
		return nil, err
	}
	objects, err := manifest.Objects(file)
	if err != nil {
		return nil, err
	}
	var definitions []Definition
	for _, o := range objects {
		if o.Kind != "CustomResourceDefinition" || o.APIVersion != stable && o.APIVersion != beta {
			continue
		}
		if o.Name == "" {
			return nil, fmt.Errorf("%s: a CustomResourceDefinition has no metadata.name", file.Name)
		}
		definitions = append(definitions, Definition{Name: o.Name, Source: file.Name, JSON: o.JSON, Beta: o.APIVersion == beta})
	}
	return definitions, nil
}

// The versions of CRDs.
const (
	stable = "apiextensions.k8s.io/v1"
	beta   = "apiextensions.k8s.io/v1beta1"
)

// unique reports two CRDs of one name: one would overwrite the other.
func unique(all []Definition) error {
	from := make(map[string]string, len(all))
	for _, d := range all {
		if before, ok := from[d.Name]; ok {
			return fmt.Errorf("%s is defined twice, in %s and in %s: take one of them out", d.Name, before, d.Source)
		}
		from[d.Name] = d.Source
	}
	return nil
}

// FromObject returns a CRD that is not in a file.
func FromObject(d *apiextensions.CustomResourceDefinition) (Definition, error) {
	d = d.DeepCopy()
	d.SetGroupVersionKind(apiextensions.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	d.Status = apiextensions.CustomResourceDefinitionStatus{}
	data, err := json.Marshal(d)
	return Definition{Name: d.Name, Source: "given as an object", JSON: data}, err
}
