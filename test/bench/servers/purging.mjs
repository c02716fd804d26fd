// `otpd serve` from its source, whose first purge does not wait for ten minutes.

const purgeEveryMs = 10 * 60_000
const wait = globalThis.setTimeout
const sooner = (run, ms) => wait(run, ms === purgeEveryMs ? 1000 : ms)
globalThis.setTimeout = Object.assign(sooner, wait)

await import('../../../cli/main.ts')
