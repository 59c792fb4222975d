package report

import (
	"bufio"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"

	"github.com/espalier-dev/espalier/finding"
)

// schemaVersion is that of the JSON output: it changes when a field changes its
// meaning or goes away, not when one is added.
const schemaVersion = 1

func (r *Report) json(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	out := struct {
		SchemaVersion int            `json:"schemaVersion"`
		Summary       map[string]int `json:"summary"`
		Subjects      []Subject      `json:"subjects"`
		Diagnostics   []Diagnostic   `json:"diagnostics"`
	}{
		schemaVersion,
		map[string]int{"subjects": len(r.Subjects), "error": r.Count(finding.Error), "warning": r.Count(finding.Warning), "info": r.Count(finding.Info)},
		append([]Subject{}, r.Subjects...), append([]Diagnostic{}, r.Diagnostics...),
	}
	return e.Encode(out)
}

var sarifLevels = map[finding.Severity]string{finding.Error: "error", finding.Warning: "warning", finding.Info: "note"}

func (r *Report) sarif(w io.Writer, o Options) error {
	driver := sarif.NewToolComponent().WithName("espalier").
		WithInformationURI("https://github.com/espalier-dev/espalier")
	if o.Version != "" {
		driver.WithVersion(o.Version)
	}
	index := make(map[finding.ID]int)
	for _, check := range r.Checks {
		index[check.ID] = len(index)
		d := sarif.NewReportingDescriptor().WithID(string(check.ID)).
			WithShortDescription(sarif.NewMultiformatMessageString().WithText(check.Explanation)).
			WithHelpURI("https://github.com/espalier-dev/espalier/blob/main/docs/checks/" + string(check.ID) + ".md").
			WithDefaultConfiguration(sarif.NewReportingConfiguration().WithLevel(sarifLevels[check.Severity]))
		if check.Help != "" {
			d.WithHelp(sarif.NewMultiformatMessageString().WithText(check.Explanation).WithMarkdown(check.Help))
		}
		driver.AddRule(d)
	}
	run := sarif.NewRun().WithTool(sarif.NewTool().WithDriver(driver)).WithColumnKind("unicodeCodePoints")
	for i := range r.Diagnostics {
		run.AddResult(sarifResult(&r.Diagnostics[i], index))
	}
	if run.Results == nil {
		run.Results = []*sarif.Result{}
	}
	out := sarif.NewReport()
	out.AddRun(run)
	if err := out.PrettyWrite(w); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func sarifResult(d *Diagnostic, index map[finding.ID]int) *sarif.Result {
	text := d.Message
	if d.Why != "" {
		text += "\n" + d.Why
	}
	if d.Fix != "" {
		text += "\nFix: " + d.Fix
	}
	result := sarif.NewResult().WithRuleID(string(d.Check)).WithLevel(sarifLevels[d.Severity]).
		WithMessage(sarif.NewTextMessage(text)).AddLocation(sarifLocation(&d.Place))
	if i, ok := index[d.Check]; ok {
		result.WithRuleIndex(i)
	}
	for _, n := range d.Notes {
		if n.File != "" {
			result.AddRelatedLocation(sarifLocation(&n.Place).WithMessage(sarif.NewTextMessage(n.Message)))
		}
	}
	return result
}

func sarifLocation(p *Place) *sarif.Location {
	physical := sarif.NewPhysicalLocation().
		WithArtifactLocation(sarif.NewArtifactLocation().WithURI(p.File))
	if p.Line > 0 {
		region := sarif.NewRegion().WithStartLine(p.Line)
		if p.Column > 0 {
			region.WithStartColumn(p.Column).WithEndColumn(p.EndColumn)
		}
		physical.WithRegion(region)
	}
	return sarif.NewLocation().WithPhysicalLocation(physical)
}

// github writes workflow commands, which GitHub shows beside the lines of a
// change.
func (r *Report) github(w io.Writer) error {
	commands := map[finding.Severity]string{finding.Error: "error", finding.Warning: "warning", finding.Info: "notice"}
	data := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	b := bufio.NewWriter(w)
	for i := range r.Diagnostics {
		d := &r.Diagnostics[i]
		fmt.Fprintf(b, "::%s file=%s", commands[d.Severity], property.Replace(d.File))
		if d.Line > 0 {
			fmt.Fprintf(b, ",line=%d", d.Line)
		}
		if d.Column > 0 {
			fmt.Fprintf(b, ",col=%d,endColumn=%d", d.Column, d.EndColumn)
		}
		text := d.Message
		for _, more := range []string{d.Why, d.Fix} {
			if more != "" {
				text += "\n" + more
			}
		}
		fmt.Fprintf(b, ",title=%s::%s\n", property.Replace(string(d.Check)), data.Replace(text))
	}
	return b.Flush()
}

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	Failure *junitFailure `xml:"failure"` // readers of JUnit expect one
}

type junitFailure struct {
	Type    string `xml:"type,attr"`
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// junit makes a suite of each file and a case of each subject; a diagnostic
// that belongs to none, such as a file that cannot be read, has its own.
func (r *Report) junit(w io.Writer, o Options) error {
	out := junitSuites{Name: strings.TrimSpace("espalier " + o.Command)}
	suites := make(map[string]int)
	cases := make(map[Subject]int)
	place := func(s Subject) *junitCase {
		i, ok := suites[s.File]
		if !ok {
			i = len(out.Suites)
			suites[s.File] = i
			out.Suites = append(out.Suites, junitSuite{Name: s.File})
		}
		suite := &out.Suites[i]
		at, ok := cases[s]
		if !ok {
			at = len(suite.Cases)
			cases[s] = at
			name := s.Object
			if name == "" {
				name = s.File
			}
			suite.Cases = append(suite.Cases, junitCase{Name: name, Class: s.File})
			suite.Tests++
			out.Tests++
		}
		return &suite.Cases[at]
	}
	for _, s := range r.Subjects {
		place(s)
	}
	for i := range r.Diagnostics {
		d := &r.Diagnostics[i]
		c := place(Subject{File: d.File, Object: d.Object})
		text := fmt.Sprintf("%s: %s: %s [%s]\n%s", d.Place, d.Severity, d.Message, d.Check, strings.Join([]string{d.Why, d.Fix}, "\n"))
		if c.Failure == nil {
			out.Failures++
			out.Suites[suites[d.File]].Failures++
			c.Failure = &junitFailure{Type: string(d.Check), Message: d.Message, Text: text}
			continue
		}
		c.Failure.Text += "\n\n" + text
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(out); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
