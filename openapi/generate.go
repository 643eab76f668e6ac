package openapi

//go:generate go run ./gen
