package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/espalier-dev/espalier/cmd/internal/docgen"
	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/openapi"
)

type schemaOptions struct {
	format   string
	version  string
	dir      string
	name     string
	allInOne bool
	strict   bool
}

// schemaFormat is something that -o takes.
type schemaFormat struct {
	name      string
	extension string // of files
	versions  bool   // one document for each version
}

var schemaFormats = []schemaFormat{
	{"jsonschema", ".json", true},
	{"openapi", ".json", true},
	{"markdown", ".md", false},
	{"html", ".html", false},
}

func newSchema(a *App) *cobra.Command {
	var o schemaOptions
	cmd := &cobra.Command{
		Use:   "schema FILE|DIR|-...",
		Short: "Convert CRDs to JSON Schema, OpenAPI, Markdown or HTML",
		Long: `Schema converts CRDs to formats for other tools and for people:

  jsonschema  for editors (yaml-language-server, VS Code) and for kubeconform:
              one document per version, or with --all-in-one one for all CRDs
  openapi     an OpenAPI v3 document per version, as API servers publish it
  markdown    documentation to read on GitHub
  html        one self-contained page per CRD, with search

It writes one document to standard output, or any number of files to the folder
named by --output-dir.`,
		Example: a.Example(`
  # Completion and hover for objects of your CRDs, in VS Code's settings.json:
  # "yaml.schemas": {"crds.schema.json": "deploy/**/*.yaml"}
  %[1]s schema config/crd --all-in-one > crds.schema.json

  # Write a folder of schemas for kubeconform
  %[1]s schema config/crd --output-dir schemas --name '{{kind}}-{{group}}-{{version}}'

  # Write the documentation of CRDs as HTML and as Markdown
  %[1]s schema -o html crd.yaml > crd.html
  %[1]s schema -o markdown config/crd --output-dir docs/api`),
	}
	takesFiles(cmd, func(ctx context.Context, files []string) error { return a.schema(ctx, files, o) })
	var formats []string
	for _, f := range schemaFormats {
		formats = append(formats, f.name)
	}
	cmd.Flags().StringVarP(&o.format, "output", "o", "jsonschema", "output format: "+strings.Join(formats, ", "))
	cmd.Flags().StringVar(&o.version, "version", "", "write only the version of this name")
	cmd.Flags().StringVar(&o.dir, "output-dir", "", "write files to this folder")
	cmd.Flags().StringVar(&o.name, "name", "", "names of the files without their ending, from {{group}}, {{kind}} (in lower case), {{plural}} and {{version}} (default {{group}}_{{kind}}_{{version}}; without the version if there is one file per CRD)")
	cmd.Flags().BoolVar(&o.allInOne, "all-in-one", false, "with jsonschema: one document for all CRDs, which chooses by apiVersion and kind")
	cmd.Flags().BoolVar(&o.strict, "strict", true, "with jsonschema: refuse fields that API servers silently drop, such as misspelt ones")
	Must(cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)))
	Must(cmd.RegisterFlagCompletionFunc("version", a.completeVersion(a.parsedCRDs)))
	Must(cmd.MarkFlagDirname("output-dir"))
	return cmd
}

func (a *App) schema(ctx context.Context, files []string, o schemaOptions) error {
	format := slices.IndexFunc(schemaFormats, func(f schemaFormat) bool { return f.name == o.format })
	if format < 0 {
		return fmt.Errorf("there is no output format %q for schemas: use jsonschema, openapi, markdown or html", o.format)
	}
	crds, err := a.parsedCRDs(ctx, files)
	if err != nil {
		return err
	}
	if o.version != "" {
		for _, d := range crds {
			if d.Version(o.version) == nil {
				return fmt.Errorf("%s has no version %q: it has %s", d.Name, o.version, versionNames(d))
			}
		}
	}
	if o.allInOne {
		if o.format != "jsonschema" || o.dir != "" {
			return errors.New("--all-in-one is for -o jsonschema, to standard output")
		}
		return a.catalogSchema(crds, o)
	}
	var documents []schemaDocument
	for _, d := range crds {
		documents = append(documents, o.documents(d, schemaFormats[format])...)
	}
	switch {
	case o.dir != "":
		return a.writeSchemas(documents, o.dir)
	case len(documents) == 1 || o.format == "markdown":
		for i, d := range documents {
			if i > 0 {
				fmt.Fprintln(a.Out)
			}
			content, err := d.make()
			if err != nil {
				return err
			}
			if _, err := a.Out.Write(content); err != nil {
				return err
			}
		}
		return nil
	}
	return severalSchemas(crds, documents, o)
}

// severalSchemas says what to do about more documents than standard output has
// room for.
func severalSchemas(crds []*crd.CRD, documents []schemaDocument, o schemaOptions) error {
	text := fmt.Sprintf("that makes %d documents: name a folder for them with --output-dir", len(documents))
	if len(crds) == 1 {
		return fmt.Errorf("%s, or one version of %s with --version", text, versionNames(crds[0]))
	}
	if o.format == "jsonschema" {
		text += ", or ask for one document with --all-in-one"
	}
	return errors.New(text)
}

func versionNames(d *crd.CRD) string {
	var names []string
	for _, v := range d.Versions {
		names = append(names, v.Name)
	}
	return strings.Join(names, ", ")
}

func (a *App) catalogSchema(crds []*crd.CRD, o schemaOptions) error {
	if o.version != "" {
		for _, d := range crds {
			d.Versions = []crd.Version{*d.Version(o.version)}
		}
	}
	content, err := openapi.Catalog(crds, openapi.Options{Strict: o.strict})
	if err != nil {
		return err
	}
	_, err = a.Out.Write(content)
	return err
}

// schemaDocument is a document to be made, and the name of its file.
type schemaDocument struct {
	name string
	make func() ([]byte, error)
}

// documents lists the documents about a CRD.
func (o schemaOptions) documents(d *crd.CRD, format schemaFormat) []schemaDocument {
	if !format.versions {
		write := docgen.Markdown
		if o.format == "html" {
			write = docgen.HTML
		}
		return []schemaDocument{{o.fileName(d, o.version, false) + format.extension, func() ([]byte, error) {
			var b bytes.Buffer
			err := write(&b, d, docgen.Options{Version: o.version})
			return b.Bytes(), err
		}}}
	}
	var list []schemaDocument
	for i := range d.Versions {
		v := &d.Versions[i]
		if o.version != "" && v.Name != o.version {
			continue
		}
		list = append(list, schemaDocument{o.fileName(d, v.Name, true) + format.extension, func() ([]byte, error) {
			if o.format == "openapi" {
				return openapi.Document(d, v)
			}
			return openapi.JSONSchema(d, v, openapi.Options{Strict: o.strict})
		}})
	}
	return list
}

// fileName fills in the pattern of names. Values of the CRD must not lead
// to other folders.
func (o schemaOptions) fileName(d *crd.CRD, version string, versions bool) string {
	pattern := o.name
	if pattern == "" {
		pattern = "{{group}}_{{kind}}"
		if versions {
			pattern += "_{{version}}"
		}
	}
	local := func(s string) string { return strings.NewReplacer("/", "-", `\`, "-", "..", "-").Replace(s) }
	return strings.NewReplacer(
		"{{group}}", local(d.Group), "{{kind}}", local(strings.ToLower(d.Kind)),
		"{{plural}}", local(d.Plural), "{{version}}", local(version),
	).Replace(pattern)
}

// writeSchemas writes files below dir and nowhere else, and their names to
// standard output.
func (a *App) writeSchemas(documents []schemaDocument, dir string) error {
	written := make(map[string]bool, len(documents))
	for _, d := range documents {
		if written[d.name] {
			return fmt.Errorf("two files would be called %s: choose --name so that names differ", d.name)
		}
		written[d.name] = true
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, d := range documents {
		content, err := d.make()
		if err != nil {
			return err
		}
		if folder := path.Dir(d.name); folder != "." {
			if err := root.MkdirAll(folder, 0o755); err != nil {
				return err
			}
		}
		if err := root.WriteFile(d.name, content, 0o644); err != nil {
			return err
		}
		fmt.Fprintln(a.Out, filepath.ToSlash(filepath.Join(dir, d.name)))
	}
	return nil
}

// parsedCRDs reads the CRDs in files.
func (a *App) parsedCRDs(ctx context.Context, files []string) ([]*crd.CRD, error) {
	s, err := a.settings()
	if err != nil {
		return nil, err
	}
	documents, err := a.objects(ctx, files, s)
	if err != nil {
		return nil, err
	}
	var list []*crd.CRD
	for _, document := range documents {
		if !typeMetaOf(document).isCRD() {
			continue
		}
		d, err := crd.Parse(document.JSON)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", document.File.Name, err)
		}
		list = append(list, d)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("no CustomResourceDefinition in %s", strings.Join(files, ", "))
	}
	return list, nil
}
