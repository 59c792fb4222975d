package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
)

// buildType is the page that says what the parameters below mean.
const buildType = homepage + "/blob/main/docs/design/0015-release.md#provenance"

// unsigned is in the statement itself, so that users do not take it for more than it is.
const unsigned = "This statement is not signed. To verify it, build again: make release-check VERSION=%s at this commit, with this Go, gives files with the digests of the subjects."

// The statement of in-toto and the provenance of SLSA, as far as we fill them in. These are plain structs, since the
// JSON of in-toto's own library, which is that of protobuf, differs from build to build on purpose.
type (
	statement struct {
		Type          string     `json:"_type"`
		Subject       []resource `json:"subject"`
		PredicateType string     `json:"predicateType"`
		Predicate     provenance `json:"predicate"`
	}
	provenance struct {
		BuildDefinition definition `json:"buildDefinition"`
		RunDetails      details    `json:"runDetails"`
	}
	definition struct {
		BuildType            string     `json:"buildType"`
		ExternalParameters   external   `json:"externalParameters"`
		InternalParameters   internal   `json:"internalParameters"`
		ResolvedDependencies []resource `json:"resolvedDependencies"`
	}
	external struct {
		Target    string   `json:"target"`
		Version   string   `json:"version"`
		Platforms []string `json:"platforms"`
		Modified  bool     `json:"modified,omitempty"` // not just the commit was built
	}
	internal struct {
		Go           string `json:"go"`
		Epoch        int64  `json:"SOURCE_DATE_EPOCH"`
		Verification string `json:"verification"`
	}
	details struct {
		Builder builder `json:"builder"`
	}
	builder struct {
		ID string `json:"id"`
	}
	resource struct {
		Name   string            `json:"name,omitempty"`
		URI    string            `json:"uri,omitempty"`
		Digest map[string]string `json:"digest,omitempty"`
	}
)

// provenance writes what was built, of what and how. There is no time of the build in it, and no name of a machine:
// two builds give the same statement.
func (r *release) provenance(programs []built) error {
	paths, err := published(r.out)
	if err != nil {
		return err
	}
	s := statement{Type: "https://in-toto.io/Statement/v1", PredicateType: "https://slsa.dev/provenance/v1"}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		s.Subject = append(s.Subject, resource{Name: filepath.Base(path), Digest: map[string]string{"sha256": fmt.Sprintf("%x", sha256.Sum256(data))}})
	}
	release, modules, err := linked(programs)
	if err != nil {
		return err
	}
	d := &s.Predicate.BuildDefinition
	d.BuildType = buildType
	d.ExternalParameters = external{Target: "make release", Version: r.version, Platforms: r.platforms, Modified: r.modified}
	d.InternalParameters = internal{Go: release, Epoch: r.time.Unix(), Verification: fmt.Sprintf(unsigned, r.version)}
	d.ResolvedDependencies = append([]resource{
		{Name: "source", URI: "git+" + homepage, Digest: map[string]string{"gitCommit": r.commit}},
		{Name: "go", URI: "pkg:generic/go@" + strings.TrimPrefix(release, "go")},
	}, modules...)
	s.Predicate.RunDetails.Builder.ID = homepage + "/tree/" + r.commit + "/tools/release"
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(s); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, fmt.Sprintf("espalier_%s_provenance.json", strings.TrimPrefix(r.version, "v"))), out.Bytes(), 0o644)
}

// linked reads out of the programs which Go and which modules they are made of.
func linked(programs []built) (release string, modules []resource, err error) {
	found := map[string]*debug.Module{}
	for _, b := range programs {
		info, err := buildinfo.ReadFile(b.binary)
		if err != nil {
			return "", nil, err
		}
		release = info.GoVersion
		for _, module := range info.Deps {
			if module.Replace != nil {
				module = module.Replace
			}
			if module.Sum != "" { // others are in the commit
				found[module.Path+"@"+module.Version] = module
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(found)) {
		digest, err := dirHash(found[key].Sum)
		if err != nil {
			return "", nil, fmt.Errorf("%s: %w", key, err)
		}
		modules = append(modules, resource{URI: component("", found[key].Path, found[key].Version).PackageURL, Digest: digest})
	}
	return release, modules, nil
}

// dirHash writes a sum of go.sum as in-toto does.
func dirHash(sum string) (map[string]string, error) {
	text, ok := strings.CutPrefix(sum, "h1:")
	raw, err := base64.StdEncoding.DecodeString(text)
	if !ok || err != nil {
		return nil, fmt.Errorf("the checksum %q is not in the form of go.sum", sum)
	}
	return map[string]string{"dirHash": fmt.Sprintf("%x", raw)}, nil
}
