package lsp

import (
	"github.com/espalier-dev/espalier/cmd/internal/report"
	"github.com/espalier-dev/espalier/crd/manifest"
	"github.com/espalier-dev/espalier/crd/splice"
	"github.com/espalier-dev/espalier/finding"
)

// GroupKind names a kind.
type GroupKind struct{ Group, Kind string }

// Engine is what the server asks the commands. Its methods are called by several goroutines.
type Engine interface {
	// Settings reads the settings file that applies to the files of a folder.
	Settings(dir string) (Settings, error)
	// CRD returns the CRD that a document is, or nil.
	CRD(d *manifest.Document) CRD
	// Fragments reports whether a file has parts of objects, which kustomize or Helm puts together: commands that look
	// through folders leave it out.
	Fragments(f *manifest.File) bool
	// Diagnose returns what check and validate report for a document.
	Diagnose(d *manifest.Document, kinds Kinds, o Options, s Settings) []report.Diagnostic
	// Suppressions reads the comments of a file that suppress findings. It returns whether one
	// suppresses a finding at a line, and what is wrong with comments.
	Suppressions(f *manifest.File, s Settings, o Options) (suppressed func(line int, check finding.ID) bool, wrong []report.Diagnostic)
	// Syntax returns what commands report for a file that cannot be parsed.
	Syntax(f *manifest.File, err error, s Settings) []report.Diagnostic
	// Fixes returns the edits that correct a finding of Diagnose, if the finding determines them.
	Fixes(d *manifest.Document, x *report.Diagnostic, kinds Kinds) []Fix
	// Page is the address of the page of a check; empty if it has none.
	Page(id finding.ID) string
}

// Options are those of the editor's settings.
type Options struct {
	Severity      finding.Severity // the least that is reported
	IgnoreMissing bool             // no finding for objects without a CRD
	Kubernetes    string           // the version of built-in kinds; empty for the newest
}

// Settings are those of a settings file.
type Settings interface {
	// Excludes reports whether commands leave a file or folder out.
	Excludes(path string) bool
	// CRDFiles are files, folders and patterns with CRDs.
	CRDFiles() []string
	// Context names the cluster whose CRDs count, too, by a context of the user's kubeconfig; empty for none.
	Context() string
}

// Kinds are the CRDs that objects are validated by.
type Kinds interface {
	// Find returns the CRD of a kind, or nil.
	Find(kind GroupKind) CRD
	// All returns the kinds of all CRDs.
	All() []GroupKind
}

// CRD is a CRD, ready to validate objects. Values are compared: an equal CRD is the same one.
type CRD interface {
	GroupKind() GroupKind
	// Versions are the names of the served versions, the newest first.
	Versions() []string
	// Schema returns the openAPIV3Schema of a version, and its JSON pointer in the document.
	Schema(version string) (schema []byte, pointer string, ok bool)
	// Document is where the CRD comes from.
	Document() *manifest.Document
}

// Fix corrects a finding.
type Fix struct {
	Title string
	// Edits change the document.
	Edits []splice.Edit
	// Text replaces the text at the finding's place, if there are no edits.
	Text string
	// Preferred fixes are the ones that an editor may apply without asking which.
	Preferred bool
}
