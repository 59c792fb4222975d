package cel

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/espalier-dev/espalier/internal/plan"
)

// programs are the rules of one node, compiled. They depend on nothing but the
// node, which is the same in all schemas that have it.
type programs struct {
	key   programsKey
	refs  int // sets that use them; guarded by the table's lock
	once  sync.Once
	rules []program
	old   bool // a rule looks at the old value
}

type programsKey struct {
	node     *plan.Node // with the rules
	declared *plan.Node // what their expressions see; nearly always node itself
	resource bool
}

// table holds the programs of the process. A plan's nodes are told apart by
// their addresses, so programs hold their node for as long as they are here.
var table = struct {
	sync.Mutex
	programs map[programsKey]*programs
}{programs: map[programsKey]*programs{}}

func acquire(key programsKey) *programs {
	table.Lock()
	defer table.Unlock()
	p := table.programs[key]
	if p == nil {
		p = &programs{key: key}
		plan.Hold(key.node)
		table.programs[key] = p
	}
	p.refs++
	return p
}

func (p *programs) release() {
	table.Lock()
	defer table.Unlock()
	if p.refs--; p.refs == 0 {
		delete(table.programs, p.key)
		plan.Release(p.key.node)
	}
}

// used are the programs that a set has used so far.
type used struct{ programs sync.Map } // programsKey → *programs

func (u *used) get(key programsKey) *programs {
	if p, ok := u.programs.Load(key); ok {
		return p.(*programs)
	}
	p := acquire(key)
	have, taken := u.programs.LoadOrStore(key, p)
	if taken {
		p.release()
	}
	return have.(*programs)
}

// release lets go of the programs and of the plan that they are for.
func (u *used) release(root *plan.Node) {
	u.programs.Range(func(_, p any) bool {
		p.(*programs).release()
		return true
	})
	plan.Release(root)
}

// program is one rule.
type program struct {
	rule    *plan.Rule
	problem string // why it could not be compiled, if it could not
	empty   bool
	old     bool   // it looks at the old value
	path    string // fieldPath, normalized
	test    evaluator
	message evaluator // nothing if there is no messageExpression that compiles
}

func (p *program) optionalOld() bool { return p.rule.OptionalOldSelf == 2 }

// text returns what errors call the rule.
func (p *program) text() string {
	if p.rule.Message != "" {
		return strings.TrimSpace(p.rule.Message)
	}
	return strings.TrimSpace(p.rule.Rule)
}

// compile compiles the rules unless that has happened.
func (p *programs) compile(l *language, views *resources) {
	p.once.Do(func() {
		s := newScope(l, p.key.declared, p.key.resource, newSizes(views))
		list := p.key.node.Rare.Rules
		p.rules = make([]program, len(list))
		for i := range list {
			p.rules[i] = s.program(&list[i], p.key.node)
			p.old = p.old || p.rules[i].old
		}
	})
}

func (s *scope) program(r *plan.Rule, n *plan.Node) program {
	p := program{rule: r}
	if strings.TrimSpace(r.Rule) == "" {
		p.empty = true
		return p
	}
	e, bad := s.parseRule(r)
	if bad == nil {
		p.test, bad = s.evaluator(e, "program instantiation failed: ")
	}
	if bad != nil {
		p.problem = bad.detail
		return p
	}
	p.old = e.usesOldSelf()
	if r.MessageExpression != "" {
		m, bad := s.parseMessage(r)
		if bad == nil {
			p.message, bad = s.evaluator(m, "")
		}
		if bad != nil {
			return p // upstream then does not get to the fieldPath, and errors are at the value with the rule
		}
	}
	if r.FieldPath != "" {
		p.path = fieldPath(n, r.FieldPath)
	}
	return p
}

func (s *scope) parseRule(r *plan.Rule) (*expression, *problem) {
	return s.parse(r.Rule, r.OptionalOldSelf == 2, types.BoolType, "compilation failed: ", "cel expression must evaluate to a bool")
}

func (s *scope) parseMessage(r *plan.Rule) (*expression, *problem) {
	return s.parse(r.MessageExpression, r.OptionalOldSelf == 2, types.StringType,
		"messageExpression compilation failed: ", "messageExpression must evaluate to a string")
}

// evaluator evaluates an expression, counting its cost or not.
type evaluator struct {
	fast     interpreter.InterpretableV2
	bounds   bounds
	counting *counting
	exact    *atomic.Pointer[exactBound]
}

// exactBound is a bound for documents of a size.
type exactBound struct {
	size  level
	bound uint32
}

// counting is the program that counts cost. It is large and rarely needed.
type counting struct {
	once    sync.Once
	program cel.Program
	err     error
}

func (s *scope) evaluator(e *expression, prefix string) (evaluator, *problem) {
	fast, err := e.fast()
	if err != nil {
		return evaluator{}, &problem{detail: prefix + err.Error()}
	}
	return evaluator{fast: fast, bounds: e.bound(), counting: new(counting), exact: new(atomic.Pointer[exactBound])}, nil
}

// bound returns what an evaluation costs at most on documents of a size. If what
// is known of the class of such documents is more than the limit, it asks parse
// for the expression and calculates it for the size.
func (e *evaluator) bound(size level, class int, parse func() *expression) uint64 {
	if class >= 0 && e.bounds[class] <= celconfig.PerCallLimit {
		return uint64(e.bounds[class])
	}
	if e.bounds[0] == unbounded {
		return unbounded // no size helps
	}
	size = size.rounded()
	x := e.exact.Load()
	if x == nil || x.size != size {
		x = &exactBound{size, unbounded}
		if p := parse(); p != nil {
			if penalty, ok := p.penalty(); ok {
				x.bound = p.boundFor(size, penalty)
			}
		}
		e.exact.Store(x)
	}
	return uint64(x.bound)
}

// eval evaluates without counting.
func (e *evaluator) eval(vars interpreter.Activation) (out ref.Val, err error) {
	defer recoverEval(&err)
	frame, err := interpreter.NewExecutionFrame(vars)
	if err != nil {
		return nil, err
	}
	defer frame.Close()
	out = e.fast.Exec(frame)
	if types.IsError(out) {
		err = out.(*types.Err)
	}
	return out, err
}

// recoverEval turns a panic of a function into the error that CEL makes of it.
func recoverEval(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("internal error: %v", r)
	}
}

// count evaluates and counts. It asks parse for the expression when the program
// that counts is first needed.
func (e *evaluator) count(vars interpreter.Activation, parse func() *expression) (out ref.Val, cost uint64, err error) {
	c := e.counting
	c.once.Do(func() {
		if x := parse(); x != nil {
			c.program, c.err = x.countingProgram()
		} else {
			c.err = errors.New("the expression does not compile")
		}
	})
	if c.err != nil {
		return nil, 0, c.err
	}
	out, details, err := c.program.Eval(vars)
	if spent := details.ActualCost(); spent != nil {
		cost = *spent
	}
	return out, cost, err
}
