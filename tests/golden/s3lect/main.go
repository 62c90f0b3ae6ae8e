// Writes the records of this folder as S3lect's struct makes Go write them, and what Go reads in ours (README.md).
package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"time"
)

type record struct {
	LeaderID    string    `json:"leaderID"`
	LeaderAddr  string    `json:"leaderAddr,omitempty"`
	LastUpdated time.Time `json:"lastUpdated"`
}

const addr = "10.0.1.42:8443"

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	at := func(zone *time.Location, nanoseconds int) time.Time {
		return time.Date(2026, 11, 21, 6, 58, 12, nanoseconds, zone)
	}
	east, west := time.FixedZone("", 2*3600), time.FixedZone("", -(9*3600+30*60))
	records := map[string]record{
		"seconds":         {"server-001", addr, at(time.UTC, 0)},
		"nanoseconds":     {"server-001", addr, at(time.UTC, 123456789)},
		"trimmed":         {"server-001", addr, at(time.UTC, 120000000)},
		"one-nanosecond":  {"server-001", addr, at(time.UTC, 1)},
		"east":            {"server-001", addr, at(east, 345678000)},
		"west":            {"server-001", addr, at(west, 345000000)},
		"without-address": {"server-001", "", at(time.UTC, 345000000)},
		"released":        {"server-001", addr, time.Time{}},
		"released-bare":   {"server-001", "", time.Time{}},
		"after-zero":      {"server-001", addr, time.Time{}.Add(1)},
		"escaped":         {"<a>&\"b\"\\/\u2028\u2029\b\t\x1f\x7fü😀", addr, at(time.UTC, 0)},
		"broken-text":     {"server-\xff", addr, at(time.UTC, 0)},
		"last-year":       {"server-001", addr, time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC)},
	}
	for name, record := range records {
		text, err := json.Marshal(record)
		check(err)
		check(os.WriteFile(name+".json", text, 0o644))
	}
	text, err := json.MarshalIndent(records["east"], "", "  ")
	check(err)
	check(os.WriteFile("indented.json", text, 0o644))

	documents, err := filepath.Glob("documents/*.json")
	check(err)
	for _, name := range documents {
		text, err := os.ReadFile(name)
		check(err)
		var read record
		check(json.Unmarshal(text, &read))
		text, err = json.Marshal(read)
		check(err)
		check(os.WriteFile(filepath.Join("read", filepath.Base(name)), text, 0o644))
	}
}
