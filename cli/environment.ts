/**
 * Sets environment variables that libraries read while they load, so it must be the binary's first import.
 * Elysia reads `NODE_ENV` at run time, where the build's `define` has no effect.
 */
Bun.env.NODE_ENV = 'production'

// `fetch` honours HTTP_PROXY. Calls to a server on this machine bypass the proxy: it could not reach the server,
// and it would see the credentials in clear text.
const loopback = ['localhost', '127.0.0.1', '::1', '[::1]']
for (const name of ['NO_PROXY', 'no_proxy']) {
  const existing = Bun.env[name] ?? ''
  Bun.env[name] = [...existing.split(',').filter(Boolean), ...loopback].join(',')
}
