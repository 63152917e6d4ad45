// Package chaos kills and rolls whole installations of the umbel binary, servers, workers, clients and Redis in processes
// of their own, and holds what comes out to the promises.
package chaos
