package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/espalier-dev/espalier/crd/impact"
)

// Plan is what the change of a CRD does to its objects.
type Plan struct {
	CRD     string `json:"crd"`
	File    string `json:"file,omitempty"`   // of the new CRD
	Source  string `json:"source,omitempty"` // of the objects, for people
	Refused []Note `json:"refused"`          // why a server refuses the new CRD
	// Unplanned says why the objects were not looked at.
	Unplanned string   `json:"unplanned,omitempty"`
	Notes     []string `json:"notes,omitempty"` // what the numbers do not say
	// A server that makes the plan binds it to the generation of the CRD and to a revision.
	Generation int64          `json:"generation,omitempty"`
	Revision   string         `json:"revision,omitempty"`
	Digest     string         `json:"digest,omitempty"`
	ID         string         `json:"id,omitempty"`
	Approve    string         `json:"approve,omitempty"` // the command that approves a plan that loses data
	Summary    impact.Summary `json:"summary"`
}

// PlanFormats are the output formats of plans, the default first.
var PlanFormats = []string{"text", "json", "markdown", "html"}

// Breaks reports whether the change is refused, loses data or stops clients.
func (p *Plan) Breaks() bool { return len(p.Refused) > 0 || p.Summary.Breaking > 0 }

// Plans are those of several CRDs.
type Plans []*Plan

// Write writes the plans in a format.
func (all Plans) Write(w io.Writer, format string, o Options) error {
	switch format {
	case "", "text":
		return all.text(w, o)
	case "json":
		return all.json(w)
	case "markdown":
		return all.markdown(w)
	case "html":
		return all.html(w)
	}
	return UnknownPlanFormat(format)
}

// UnknownPlanFormat is the error for a format that plans do not have.
func UnknownPlanFormat(format string) error {
	return fmt.Errorf("there is no output format %q for plans: use one of %v", format, PlanFormats)
}

func (all Plans) json(w io.Writer) error {
	for _, p := range all {
		if p.Refused == nil {
			p.Refused = []Note{}
		}
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(struct {
		SchemaVersion int   `json:"schemaVersion"`
		Plans         Plans `json:"plans"`
	}{1, all})
}

// headline says in one sentence what happens, without the name of the CRD.
func (p *Plan) headline() string {
	var parts []string
	if len(p.Refused) > 0 {
		parts = append(parts, "the server refuses this change")
	}
	if p.Unplanned != "" {
		return strings.Join(append(parts, p.Unplanned), "; ")
	}
	return strings.Join(append(parts, p.Summary.Headline()), "; ")
}

// planEffect is one thing that happens, and where.
type planEffect struct {
	impact.Effects
	Objects int64
	Groups  []impact.Group
	More    int // groups that are not shown
}

// Title says how many objects are affected.
func (e *planEffect) Title() string {
	return counted(e.Objects, "object") + " " + e.SaysOf(e.Objects)
}

// Breaks reports whether the effect loses data or stops clients.
func (e *planEffect) Breaks() bool { return e.Effects&impact.Breaking != 0 }

// Fix says what to do about it.
func (e *planEffect) Fix() string { return planFixes[e.Effects] }

// unchecked is the field of the error that says that CEL rules were not evaluated. It comes with the
// errors that are the reason, and says nothing about the object.
const unchecked = "<nil>"

// maxPlaces bounds the places that are shown for one effect.
const maxPlaces = 20

// effects lists what happens, the most severe first.
func (p *Plan) effects() []planEffect {
	p.Summary.Order()
	var all []planEffect
	for _, effect := range (^impact.Effects(0)).Each() {
		n := p.Summary.Counts[effect.String()]
		if n == 0 {
			continue
		}
		e := planEffect{Effects: effect, Objects: n}
		for i := range p.Summary.Groups {
			switch g := &p.Summary.Groups[i]; {
			case g.Effect != effect || g.Field == unchecked:
			case len(e.Groups) < maxPlaces:
				e.Groups = append(e.Groups, *g)
			default:
				e.More++
			}
		}
		all = append(all, e)
	}
	return all
}

// planFixes say what to do about an effect.
var planFixes = map[impact.Effects]string{
	impact.LosesFields:       "keep the fields in the schema, or move their values to fields that stay before you apply the CRD",
	impact.LosesInConversion: "add the fields to the new storage version, or convert them to fields that it has",
	impact.RefusedOnUpdate:   "correct these objects before you apply the CRD, or relax the schema: afterwards clients can neither change them nor remove their finalizers",
	impact.RefusedOnCreate:   "correct these objects where they come from (Git, charts, backups), or relax the schema; the server keeps those that are stored",
	impact.VersionGone:       "keep the version in the CRD until all objects are stored in another one: espalier migrate, then remove it",
	impact.NotConvertible:    "correct the objects or the conversion before you apply the change",
	impact.Unreadable:        "correct the objects or the schema before you apply the CRD",
	impact.NotServed:         "move clients to a version that is served first; the objects stay",
	impact.ConversionUnknown: "plan on a server that calls the webhook, or test that it converts these objects",
	impact.ChangesValues:     "if clients depend on the value, write it into the objects before you apply the CRD, or keep the default",
	impact.NewDefaults:       "nothing, if the default means what objects without the field mean today",
	impact.KeepsFields:       "look at the values: they were stored earlier, and no client has seen them since",
	impact.DeadManagers:      "rewrite the objects with espalier migrate: such entries can block updates by server-side apply",
	impact.UnreadableToday:   "correct or delete these objects; this change is not the cause",
}

// groupPlace is where a group of objects is affected, on one line: a field may be called anything.
func groupPlace(g *impact.Group) string {
	switch {
	case g.Field != "":
		return shortened(g.Field) + " (" + shortened(g.Version) + ")"
	case g.Effect == impact.DeadManagers:
		return shortened(g.Message)
	}
	return shortened(g.Version)
}

// groupMessage is what the server says of the first object, on one line.
func groupMessage(g *impact.Group) string {
	if g.Effect == impact.DeadManagers {
		return ""
	}
	return shortened(g.Message)
}

// maxMessage bounds a message: an object can be repeated in it.
const maxMessage = 400

func shortened(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxMessage {
		return strings.ToValidUTF8(text[:maxMessage], "") + "…"
	}
	return text
}

// examples names objects of a group.
func examples(g *impact.Group) string {
	text := shortened(strings.Join(g.Example, ", "))
	if more := g.Objects - int64(len(g.Example)); more > 0 && text != "" {
		text += ", …"
	}
	return text
}

// maxNames bounds the managers and owners that are shown.
const maxNames = 8

// names lists names with their numbers, the most frequent first.
func names(c impact.Count) string {
	var parts []string
	for i, name := range c.Sorted() {
		if i == maxNames {
			parts = append(parts, number(int64(len(c)-maxNames))+" more")
			break
		}
		parts = append(parts, shortened(name)+" ("+number(c[name])+")")
	}
	return strings.Join(parts, ", ")
}

// outcomeLines say what happens to one object.
func outcomeLines(x *impact.Outcome) []string {
	var lines []string
	for _, list := range []struct {
		says  string
		paths []string
	}{{"loses ", x.Lost}, {"loses in conversion ", x.LostConverting}, {"gets a default for ", x.Defaulted}, {"shows again ", x.Kept}, {"managedFields of ", x.DeadManagers}} {
		if n := len(list.paths); n > maxPlaces {
			lines = append(lines, list.says+shortened(strings.Join(list.paths[:maxPlaces], ", "))+" and "+strconv.Itoa(n-maxPlaces)+" more")
		} else if n > 0 {
			lines = append(lines, list.says+shortened(strings.Join(list.paths, ", ")))
		}
	}
	for _, list := range []struct {
		says     string
		refusals []impact.Refusal
	}{{"cannot be updated: ", x.Update}, {"is refused if it is created again: ", x.Create}} {
		for _, r := range list.refusals {
			if r.Field == unchecked {
				continue
			}
			lines = append(lines, list.says+shortened(strings.TrimPrefix(r.Field+": "+r.Message, ": ")))
		}
	}
	const told = impact.LosesFields | impact.LosesInConversion | impact.NewDefaults | impact.KeepsFields | impact.DeadManagers | impact.RefusedOnUpdate | impact.RefusedOnCreate
	for _, e := range (x.Effects &^ told).Each() {
		line := e.SaysOf(1)
		if x.Explanation != "" && e&(impact.VersionGone|impact.NotServed) == 0 {
			line += ": " + shortened(x.Explanation)
		}
		lines = append(lines, line)
	}
	return lines
}

func counted(n int64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return number(n) + " " + noun
}

// number renders a number with separators.
func number(n int64) string { return impact.Number(n) }
