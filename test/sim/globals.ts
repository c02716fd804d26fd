import type { Scheduler } from './scheduler.ts'
import type { Chance } from './chance.ts'

/**
 * Gives libraries simulated time and chance too: the JWT library, for example, reads the clock. The server itself must not
 * use them, so timers fail; `test/lint/world.test.ts` names what it may use.
 */
export function replaceGlobals(getScheduler: () => Scheduler, getChance: () => Chance): void {
  const RealDate = Date
  class SimulatedDate extends RealDate {
    constructor(...values: [] | [value: number | string | Date]) {
      if (values.length === 0) super(getScheduler().now())
      else super(...(values as [number]))
    }
    static override now = () => Math.floor(getScheduler().now())
  }
  globalThis.Date = SimulatedDate as DateConstructor
  performance.now = () => getScheduler().now()
  Math.random = () => getChance().next()
  crypto.getRandomValues = ((bytes: Uint8Array) => getChance().fill(bytes)) as typeof crypto.getRandomValues
  crypto.randomUUID = () => uuid(getChance())
  const { subtle } = crypto
  const awaited = new Proxy(subtle, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name)
      if (typeof member !== 'function') return member
      return (...values: unknown[]) =>
        getScheduler().outside(Reflect.apply(member, target, values) as Promise<unknown>)
    },
  })
  Object.defineProperty(crypto, 'subtle', { value: awaited, configurable: true })
  for (const name of ['setTimeout', 'setInterval', 'setImmediate'] as const)
    Object.defineProperty(globalThis, name, {
      configurable: true,
      writable: true,
      value(call: () => void, ms = 0) {
        if (!(new Error('who calls').stack ?? '').includes('/node_modules/'))
          throw new Error(`${name} is not the one of the simulated world`)
        const cancel = getScheduler().after(ms, call)
        return { cancel, unref: () => {}, ref: () => {} }
      },
    })
}

export function uuid(chance: Chance): `${string}-${string}-${string}-${string}-${string}` {
  const hex = chance.fill(Buffer.alloc(16)).toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20)}`
}
