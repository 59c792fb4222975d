package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

// own is the beginning of the paths of this repository's modules.
const own = "github.com/espalier-dev/espalier"

// billOf makes the software bill of materials of a binary, as CycloneDX in JSON: the
// modules that were linked into it, with their checksums as go.sum has them, and the
// standard library.
func billOf(name, binary, version string, at time.Time) ([]byte, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	program := component(cyclonedx.ComponentTypeApplication, info.Main.Path, version)
	program.Name = name
	program.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: fmt.Sprintf("%x", sum)}}
	program.Licenses = &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "Apache-2.0"}}}
	program.Properties = settingsOf(info)
	libraries := []cyclonedx.Component{component(cyclonedx.ComponentTypeLibrary, "std", info.GoVersion)}
	for _, module := range info.Deps {
		if strings.HasPrefix(module.Path, own) && module.Version == "(devel)" {
			module.Version = version // the modules of this repository are released together
		}
		libraries = append(libraries, library(module))
	}
	refs := make([]string, len(libraries))
	for i, library := range libraries {
		refs[i] = library.BOMRef
	}
	bill := cyclonedx.NewBOM()
	bill.SerialNumber = serial(sum)
	bill.Metadata = &cyclonedx.Metadata{Timestamp: at.Format(time.RFC3339), Component: &program}
	bill.Components = &libraries
	bill.Dependencies = &[]cyclonedx.Dependency{{Ref: program.BOMRef, Dependencies: &refs}}
	var out bytes.Buffer
	encoder := cyclonedx.NewBOMEncoder(&out, cyclonedx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false)
	err = encoder.EncodeVersion(bill, cyclonedx.SpecVersion1_6)
	return out.Bytes(), err
}

// library is a module, or what takes its place.
func library(module *debug.Module) cyclonedx.Component {
	if module.Replace != nil {
		module = module.Replace
	}
	c := component(cyclonedx.ComponentTypeLibrary, module.Path, module.Version)
	if module.Sum != "" {
		c.Properties = &[]cyclonedx.Property{{Name: "go:sum", Value: module.Sum}}
	}
	return c
}

func component(kind cyclonedx.ComponentType, path, version string) cyclonedx.Component {
	// The plus sign of a version is a space to some who read URLs.
	url := "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
	return cyclonedx.Component{BOMRef: url, Type: kind, Name: path, Version: version, PackageURL: url}
}

// settingsOf are how the program was built.
func settingsOf(info *debug.BuildInfo) *[]cyclonedx.Property {
	properties := []cyclonedx.Property{}
	for _, setting := range info.Settings {
		properties = append(properties, cyclonedx.Property{Name: "go:build:" + strings.TrimPrefix(setting.Key, "-"), Value: setting.Value})
	}
	return &properties
}

// serial is the name of a bill: a UUID (of version 8, RFC 9562) that is made of the
// binary's checksum, so that it is the same for the same binary.
func serial(sum [sha256.Size]byte) string {
	id := sum[:16]
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}
