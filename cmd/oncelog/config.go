package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// configFile is the path of a JSON file with values for settings. It is one object; its
// keys are names of settings of any command, as they are, in camelCase or in snake_case,
// so that one file can serve server and clients.
type configFile string

// nameSettings gives the flags of serve their environment variables; other flags that
// are settings name theirs in a tag. A flag without one is no setting: it says what one
// command is to do, and if the environment or a file could say it, a variable meant
// for one command would quietly change what others do.
func nameSettings(k *kong.Kong) error {
	for _, command := range k.Model.Children {
		if command.Name != "serve" {
			continue
		}
		for _, f := range command.Flags {
			if f.Name != "help" && len(f.Envs) == 0 {
				f.Envs = []string{"ONCELOG_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))}
				f.Value.Tag.Envs = f.Envs
			}
		}
	}
	return nil
}

// BeforeResolve loads the file; kong calls it when a path was given.
func (configFile) BeforeResolve(k *kong.Kong, c *kong.Context, trace *kong.Path) error {
	path, ok := c.FlagValue(trace.Flag).(configFile)
	if !ok || path == "" {
		return nil
	}
	values, err := loadConfig(string(path), k.Model)
	if err != nil {
		return fmt.Errorf("config file %s: %w", path, err)
	}
	c.AddResolver(values)
	return nil
}

// fileValues are values by the names of flags. As a resolver they yield to the
// environment, which kong's own one for JSON does not.
type fileValues map[string]any

// Validate has nothing to do: loadConfig refuses keys that are no flags.
func (fileValues) Validate(*kong.Application) error { return nil }

// Resolve gives the value for a flag that is not on the command line.
func (v fileValues) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if len(flag.Envs) == 0 {
		return nil, nil // no setting, though another command has one of that name
	}
	for _, name := range flag.Envs {
		if _, set := os.LookupEnv(name); set {
			return nil, nil
		}
	}
	return v[flag.Name], nil
}

func loadConfig(path string, app *kong.Application) (fileValues, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var file map[string]jsontext.Value
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	names := spellings(app.Node)
	values := fileValues{}
	for key, raw := range file {
		name, known := names[key]
		if !known {
			return nil, fmt.Errorf("%q is no setting; oncelog serve --help lists them", key)
		}
		if _, twice := values[name]; twice {
			return nil, fmt.Errorf("--%s is set twice, as %q too", name, key)
		}
		if values[name], err = flagValue(raw); err != nil {
			return nil, fmt.Errorf("%q: %w", key, err)
		}
	}
	return values, nil
}

// spellings maps all ways to write a setting as a key to the flag's name.
func spellings(app *kong.Node) map[string]string {
	names := map[string]string{}
	var visit func(n *kong.Node)
	visit = func(n *kong.Node) {
		for _, f := range n.Flags {
			if len(f.Envs) == 0 || f.Name == "config" {
				continue
			}
			words := strings.Split(f.Name, "-")
			names[f.Name] = f.Name
			names[strings.Join(words, "_")] = f.Name
			for i := 1; i < len(words); i++ {
				words[i] = strings.ToUpper(words[i][:1]) + words[i][1:]
			}
			names[strings.Join(words, "")] = f.Name
		}
		for _, child := range n.Children {
			visit(child)
		}
	}
	visit(app)
	return names
}

// flagValue turns a JSON value into what kong parses. Numbers become text: as floats
// they would lose digits.
func flagValue(raw jsontext.Value) (any, error) {
	switch raw.Kind() {
	case '"':
		var s string
		err := json.Unmarshal(raw, &s)
		return s, err
	case '0':
		return string(raw), nil
	case 't', 'f':
		return raw.Kind() == 't', nil
	case '[':
		var items []jsontext.Value
		if err := json.Unmarshal(raw, &items); err != nil {
			return nil, err
		}
		list := make([]any, len(items))
		for i, item := range items {
			if item.Kind() == '[' {
				return nil, errors.New("a list in a list is no value for a flag")
			}
			v, err := flagValue(item)
			if err != nil {
				return nil, err
			}
			list[i] = v
		}
		return list, nil
	default:
		return nil, fmt.Errorf("%s is no value for a flag", raw)
	}
}
