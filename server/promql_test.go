package server_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// selector is a metric that a PromQL expression names, with what it asks of its labels.
type selector struct {
	metric   string
	matchers []matcher
}

type matcher struct{ label, operator, value string }

// selectors are what an expression is about: its metrics, and the labels by which it
// groups. It is a lexer with a little memory: what is a metric in PromQL follows from what
// stands beside a word. A word that it cannot place is an error, and so is a function that
// it does not know, for it could be a metric with a slip.
func selectors(expr string) (found []selector, grouped []string, err error) {
	tokens, err := lex(expr)
	if err != nil {
		return nil, nil, err
	}
	next := func(i int) string {
		if i+1 < len(tokens) {
			return tokens[i+1]
		}
		return ""
	}
	for i := 0; i < len(tokens); i++ {
		word := tokens[i]
		switch {
		case !promWord.MatchString(word):
		case slices.Contains(promModifiers, word):
			if next(i) != "(" {
				return nil, nil, fmt.Errorf("%s without labels", word)
			}
			for i += 2; i < len(tokens) && tokens[i] != ")"; i++ {
				if tokens[i] != "," {
					grouped = append(grouped, tokens[i])
				}
			}
		case slices.Contains(promOperators, word):
		case slices.Contains(promFunctions, word) && (next(i) == "(" || next(i) == "by" || next(i) == "without"):
		case next(i) == "(":
			return nil, nil, fmt.Errorf("the function %s is not known", word)
		default:
			s := selector{metric: word}
			if next(i) == "{" {
				if s.matchers, i, err = labelMatchers(tokens, i+2); err != nil {
					return nil, nil, err
				}
			}
			found = append(found, s)
		}
	}
	return found, grouped, nil
}

// labelMatchers reads what stands in braces, from tokens[i] on, and gives the place of the
// one that closes.
func labelMatchers(tokens []string, i int) (found []matcher, end int, err error) {
	for ; i < len(tokens) && tokens[i] != "}"; i++ {
		if tokens[i] == "," {
			continue
		}
		if i+2 >= len(tokens) || !promWord.MatchString(tokens[i]) || !slices.Contains([]string{"=", "!=", "=~", "!~"}, tokens[i+1]) {
			return nil, i, fmt.Errorf("no matcher of labels: %q", tokens[i])
		}
		value := tokens[i+2]
		found = append(found, matcher{tokens[i], tokens[i+1], strings.Trim(value, value[:1])})
		i += 2
	}
	return found, i, nil
}

var (
	promToken = regexp.MustCompile(`^(?:\s+|#[^\n]*|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|` + "`[^`]*`" +
		`|\$\{?[A-Za-z_]\w*\}?|[A-Za-z_:][\w:]*|[0-9.][0-9A-Za-z.]*|=~|!~|!=|==|>=|<=|[-+*/%^=<>(){}\[\],@:])`)
	promWord = regexp.MustCompile(`^[A-Za-z_:]`)

	promModifiers = []string{"by", "without", "on", "ignoring", "group_left", "group_right"}
	promOperators = []string{"and", "or", "unless", "bool", "offset"}
	promFunctions = []string{
		"absent", "avg", "changes", "count", "delta", "deriv", "histogram_quantile", "increase", "max", "max_over_time",
		"min", "min_over_time", "predict_linear", "rate", "sum", "time",
	}
)

// lex splits an expression, without white space and comments.
func lex(expr string) ([]string, error) {
	var tokens []string
	for rest := expr; rest != ""; {
		token := promToken.FindString(rest)
		if token == "" {
			return nil, fmt.Errorf("what is %q", rest)
		}
		if strings.TrimSpace(token) != "" && token[0] != '#' {
			tokens = append(tokens, token)
		}
		rest = rest[len(token):]
	}
	return tokens, nil
}

// exposed are the metrics of a server: by name, the values of each label.
type exposed map[string]map[string][]string

// faults says what of an expression the server does not have.
func (e exposed) faults(expr string) (named, faults []string) {
	found, grouped, err := selectors(expr)
	if err != nil {
		return nil, []string{err.Error()}
	}
	if len(found) == 0 {
		faults = append(faults, "it is about no metric")
	}
	labels := map[string]bool{"instance": true} // Prometheus adds it
	for _, s := range found {
		named = append(named, s.metric)
		of, ok := e[s.metric]
		if !ok {
			faults = append(faults, "there is no metric "+s.metric)
			continue
		}
		for label := range of {
			labels[label] = true
		}
		for _, m := range s.matchers {
			values, has := of[m.label]
			switch {
			case m.label == "instance":
			case !has:
				faults = append(faults, fmt.Sprintf("%s has no label %s", s.metric, m.label))
			case m.operator == "=" && !slices.Contains(values, m.value):
				faults = append(faults, fmt.Sprintf("%s of %s is never %s", m.label, s.metric, m.value))
			}
		}
	}
	for _, label := range grouped {
		if !labels[label] {
			faults = append(faults, "it groups by "+label+", which none of its metrics has")
		}
	}
	return named, faults
}

// TestSelectors: the check of the dashboard and the alerts finds what is wrong with them.
func TestSelectors(t *testing.T) {
	e := exposed{
		"a_total":    {"code": {"200", "x"}},
		"b_bucket":   {"le": {"1", "+Inf"}},
		"code:ratio": {},
	}
	good := map[string][]string{
		`sum by (code, instance) (rate(a_total{instance=~"$instance",code="x"}[$__rate_interval]))`: {"a_total"},
		`histogram_quantile(0.99, sum by (le) (rate(b_bucket[5m])) ) > 1e-3 # not c_total`:          {"b_bucket"},
		"a_total{code!=`y`} > 0 and on (code) b_bucket or code:ratio offset 5m":                     {"a_total", "b_bucket", "code:ratio"},
		`a_total{code=~"c_total|sum(x)"} - time() < 14 * 86400`:                                     {"a_total"},
	}
	for expr, want := range good {
		if named, faults := e.faults(expr); len(faults) > 0 || !slices.Equal(named, want) {
			t.Errorf("%s: %v, %v", expr, named, faults)
		}
	}
	bad := map[string]string{
		`rate(a_tota1[5m])`:              "there is no metric a_tota1",
		`rate(a[5m])`:                    "there is no metric a",
		`up == 0`:                        "there is no metric up",
		`sum(rate(a_total[5m])) / gone`:  "there is no metric gone",
		`a_total{status="200"}`:          "a_total has no label status",
		`a_total{code="404"}`:            "code of a_total is never 404",
		`sum by (topic) (a_total)`:       "it groups by topic, which none of its metrics has",
		`max by (le) (a_total)`:          "it groups by le, which none of its metrics has",
		`rates(a_total[5m])`:             "the function rates is not known",
		`a_total{code}`:                  `no matcher of labels: "code"`,
		`1 > 0`:                          "it is about no metric",
		`a_total ? 1`:                    `what is "? 1"`,
		`sum(a_total) without code > 1`:  "without without labels",
		`absent(b_bucket{le="1"}) + sum`: "there is no metric sum",
	}
	for expr, want := range bad {
		if _, faults := e.faults(expr); !slices.Equal(faults, []string{want}) {
			t.Errorf("%s: %q, want %q", expr, faults, want)
		}
	}
}
