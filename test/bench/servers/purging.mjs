// `otpd serve` from source, with a first purge that does not wait ten minutes.

const purgeEveryMs = 10 * 60_000
const wait = globalThis.setTimeout
const sooner = (run, ms) => wait(run, ms === purgeEveryMs ? 1000 : ms)
globalThis.setTimeout = Object.assign(sooner, wait)

await import('../../../cli/main.ts')
