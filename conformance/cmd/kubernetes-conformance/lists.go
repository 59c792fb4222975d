package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/conformance/launch"
)

// The lists of specs in conformance/kubernetes.
const (
	referenceList   = "reference.txt"
	controllersList = "controllers.txt"
)

// headers are the first lines of the lists.
var headers = map[string]string{
	referenceList: "# Conformance specs of Kubernetes that pass with kube-apiserver alone, one a line.\n" +
		"# make kubernetes-conformance CONFORMANCEFLAGS='-only kube-apiserver -all -record' writes this file.\n",
	controllersList: "# Conformance specs of Kubernetes that fail with kube-apiserver alone and need only controllers that our server has, one a line.\n" +
		"# make kubernetes-conformance CONFORMANCEFLAGS='-only kube-apiserver -all -record -controllers KUBE-CONTROLLER-MANAGER' writes this file.\n",
}

func listPath(name string) (string, error) {
	root, err := launch.Root()
	if err != nil {
		return "", err
	}
	return filepath.Join(root, "conformance", "kubernetes", name), nil
}

func readList(name string) ([]string, error) {
	path, err := listPath(name)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseList(name, string(text))
}

func writeList(name string, specs []string) error {
	path, err := listPath(name)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(formatList(name, specs)), 0o644)
}

// parseList reads the names of specs, one a line. Empty lines and lines that start with # do not count.
func parseList(name, text string) ([]string, error) {
	var list []string
	seen := map[string]bool{}
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if seen[line] {
			return nil, fmt.Errorf("%s:%d: the spec is listed twice: %s", name, number, line)
		}
		seen[line] = true
		list = append(list, line)
	}
	return list, nil
}

func formatList(name string, specs []string) string {
	sorted := slices.Sorted(slices.Values(specs))
	return headers[name] + strings.Join(append(sorted, ""), "\n")
}

// matching returns the names that match a pattern.
func matching(names []string, pattern *regexp.Regexp) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !pattern.MatchString(name) })
}

// without returns the names that are not among others.
func without(names, others []string) []string {
	known := map[string]bool{}
	for _, name := range others {
		known[name] = true
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return known[name] })
}
