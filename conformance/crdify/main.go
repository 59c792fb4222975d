package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/crdify/pkg/config"
	"sigs.k8s.io/crdify/pkg/runner"
	"sigs.k8s.io/crdify/pkg/validations"
	"sigs.k8s.io/crdify/pkg/validators/version"
)

// answer lists the names of the validations that complain.
type answer struct {
	Errors   []string `json:"errors"`
	Warnings []string `json:"warnings"`
	Served   []string `json:"served"` // errors about different versions of one CRD
}

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "crdify:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	r, err := runner.New(&config.Config{UnhandledEnforcement: config.EnforcementPolicyError, Conversion: config.ConversionPolicyNone}, runner.DefaultRegistry())
	if err != nil {
		return err
	}
	decoder, buffered := json.NewDecoder(bufio.NewReaderSize(in, 1<<20)), bufio.NewWriter(out)
	encoder := json.NewEncoder(buffered)
	for {
		var pair struct {
			Old, New apiextensionsv1.CustomResourceDefinition
		}
		if err := decoder.Decode(&pair); errors.Is(err, io.EOF) {
			return buffered.Flush()
		} else if err != nil {
			return err
		}
		results := r.Run(&pair.Old, &pair.New)
		var a, served answer
		for _, x := range results.CRDValidation {
			a.add(x)
		}
		a.versions(results.SameVersionValidation)
		served.versions(results.ServedVersionValidation)
		a.Served = served.Errors
		if err := encoder.Encode(a); err != nil {
			return err
		}
	}
}

func (a *answer) versions(list []version.VersionedPropertyComparisonResult) {
	for _, v := range list {
		for _, p := range v.PropertyComparisons {
			for _, x := range p.ComparisonResults {
				a.add(x)
			}
		}
	}
}

func (a *answer) add(x validations.ComparisonResult) {
	if len(x.Errors) > 0 && !slices.Contains(a.Errors, x.Name) {
		a.Errors = append(a.Errors, x.Name)
	}
	if len(x.Warnings) > 0 && !slices.Contains(a.Warnings, x.Name) {
		a.Warnings = append(a.Warnings, x.Name)
	}
}
