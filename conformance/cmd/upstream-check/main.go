package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: upstream-check DIR")
		os.Exit(2)
	}
	crds, found := 0, 0
	err := filepath.WalkDir(os.Args[1], func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(path) != ".yaml" && filepath.Ext(path) != ".yml" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		n, errs := check(path, data)
		crds += n
		found += errs
		return nil
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	fmt.Printf("%d errors in %d CRDs\n", found, crds)
}

func check(path string, data []byte) (crds, found int) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		doc, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return crds, found
		}
		var crd v1.CustomResourceDefinition
		if err == nil {
			err = yaml.Unmarshal(doc, &crd)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, path, err)
			return crds, found
		}
		if crd.Kind != "CustomResourceDefinition" || crd.APIVersion != "apiextensions.k8s.io/v1" {
			continue
		}
		v1.SetObjectDefaults_CustomResourceDefinition(&crd)
		var internal apiextensions.CustomResourceDefinition
		if err := v1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&crd, &internal, nil); err != nil {
			fmt.Fprintln(os.Stderr, path, err)
			continue
		}
		crds++
		for _, e := range validation.ValidateCustomResourceDefinition(context.Background(), &internal) {
			fmt.Printf("%s: %v\n", path, e)
			found++
		}
	}
}
