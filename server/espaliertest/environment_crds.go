package espaliertest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/crd/manifest"
	"github.com/espalier-dev/espalier/server/crdinstall"
)

// CRDInstallOptions say which CustomResourceDefinitions to install.
type CRDInstallOptions struct {
	// Scheme has the types that decide which CRDs get a conversion webhook.
	// Nil is client-go's scheme.Scheme.
	Scheme *runtime.Scheme
	// Paths are folders and files. Of a folder, the files that end in .yaml, .yml or
	// .json are read, and what is not a CRD in them is left out. Of two
	// CRDs of the same name the last one counts.
	Paths []string
	// CRDs are CRDs that are not in files.
	CRDs []*apiextensions.CustomResourceDefinition
	// ErrorIfPathMissing fails if one of the paths does not exist.
	ErrorIfPathMissing bool
	// MaxTime is how long to wait until all are served; zero is a minute.
	MaxTime time.Duration
	// PollInterval is ignored.
	PollInterval time.Duration
	// CleanUpAfterUse deletes the CRDs in Stop. On a test server, which stops then,
	// it makes no difference.
	CleanUpAfterUse bool
	// WebhookOptions say where the conversion webhook is. Environment fills them in.
	WebhookOptions WebhookInstallOptions
}

// InstallCRDs installs CRDs on any server and returns them when they are
// served.
func InstallCRDs(config *rest.Config, options CRDInstallOptions) ([]*apiextensions.CustomResourceDefinition, error) {
	all, err := options.read()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(options.MaxTime, startTime))
	defer cancel()
	return all, installCRDs(ctx, config, all)
}

func installCRDs(ctx context.Context, config *rest.Config, all []*apiextensions.CustomResourceDefinition) error {
	definitions := make([]crdinstall.Definition, len(all))
	for i, d := range all {
		var err error
		if definitions[i], err = crdinstall.FromObject(d); err != nil {
			return fmt.Errorf("%s: %w", d.Name, err)
		}
	}
	return applyCRDs(ctx, config, definitions)
}

// UninstallCRDs deletes CRDs from any server. A CRD that does not exist is no error.
func UninstallCRDs(config *rest.Config, options CRDInstallOptions) error {
	all, err := options.read()
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(options.MaxTime, startTime))
	defer cancel()
	var errs []error
	resource := client.Resource(apiextensions.SchemeGroupVersion.WithResource("customresourcedefinitions"))
	for _, d := range all {
		if err := resource.Delete(ctx, d.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// read returns the CRDs of the options, with the conversion webhooks that
// their types ask for.
func (o *CRDInstallOptions) read() ([]*apiextensions.CustomResourceDefinition, error) {
	all := mergeCRDs(o.CRDs, nil)
	files, err := filesOf(o.Paths, !o.ErrorIfPathMissing)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		some, err := definitionsOf(file)
		if err != nil {
			return nil, err
		}
		all = mergeCRDs(all, some)
	}
	types := o.Scheme
	if types == nil {
		types = scheme.Scheme
	}
	o.WebhookOptions.convertBy(types, all)
	return all, nil
}

// filesOf returns the files among paths, and those of folders that may have objects.
func filesOf(paths []string, mayBeMissing bool) (files []string, err error) {
	for _, path := range paths {
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, os.ErrNotExist) && mayBeMissing:
			continue
		case err != nil:
			return nil, err
		case !info.IsDir():
			files = append(files, path)
			continue
		}
		entries, err := os.ReadDir(path)
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			if name := filepath.Join(path, entry.Name()); !entry.IsDir() && manifest.IsManifest(name) {
				files = append(files, name)
			}
		}
	}
	return files, nil
}

// objectsOf returns the objects of a file.
func objectsOf(path string) ([]*manifest.Document, error) {
	file, err := manifest.Open(path, nil)
	if err != nil {
		return nil, err
	}
	return manifest.Objects(file)
}

func definitionsOf(path string) ([]*apiextensions.CustomResourceDefinition, error) {
	objects, err := objectsOf(path)
	if err != nil {
		return nil, err
	}
	var all []*apiextensions.CustomResourceDefinition
	for _, o := range objects {
		if o.Kind != "CustomResourceDefinition" {
			continue
		}
		if o.APIVersion != apiextensions.SchemeGroupVersion.String() {
			return nil, fmt.Errorf("%s: the apiVersion of %s is %s, not %s: convert it with `espalier fix`, or give it to Start, which accepts it", path, o.Name, o.APIVersion, apiextensions.SchemeGroupVersion)
		}
		d := &apiextensions.CustomResourceDefinition{}
		if err := json.Unmarshal(o.JSON, d); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", path, o.Name, err)
		}
		all = append(all, d)
	}
	return all, nil
}

// mergeCRDs returns copies of all CRDs. Of two of the same name the last one
// counts.
func mergeCRDs(first, second []*apiextensions.CustomResourceDefinition) []*apiextensions.CustomResourceDefinition {
	var all []*apiextensions.CustomResourceDefinition
	at := map[string]int{}
	for _, d := range slices.Concat(first, second) {
		if i, ok := at[d.Name]; ok {
			all[i] = d.DeepCopy()
			continue
		}
		at[d.Name] = len(all)
		all = append(all, d.DeepCopy())
	}
	return all
}

// mergePaths returns all paths, each once.
func mergePaths(first, second []string) []string {
	var all []string
	for _, path := range slices.Concat(first, second) {
		if !slices.Contains(all, path) {
			all = append(all, path)
		}
	}
	return all
}
