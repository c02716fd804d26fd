import { findSettingFaults } from '../../src/delivery/kit/provider-kinds.ts'
import type { Provider } from '../../src/delivery/kit/provider.ts'
import { createSmpp, smpp } from '../../src/delivery/providers/smpp.ts'
import { startSmsc } from './smsc.ts'

export const smppTimes = { bindMs: 30_000, responseMs: 1_000, backoffMinMs: 5, backoffMaxMs: 20 }
/** A pause that no test outlives. */
export const longPause = { ...smppTimes, backoffMinMs: 600_000, backoffMaxMs: 600_000 }

export const smppValues = {
  host: '127.0.0.1',
  systemId: 'otpd',
  password: 'secret',
  from: 'ACME',
  tls: 'off',
}

export type SmppTest = Awaited<ReturnType<typeof startSmppTest>>

/** An SMSC, and providers in front of it. */
export async function startSmppTest() {
  const smsc = await startSmsc()
  const providers: Provider[] = []
  return {
    smsc,
    makeProvider(changes: Record<string, string> = {}, times = smppTimes): Provider {
      const values = { ...smppValues, port: String(smsc.port), ...changes }
      const faults = findSettingFaults(smpp, values)
      if (faults.length > 0) throw new Error(JSON.stringify(faults))
      const defaults = Object.fromEntries(
        Object.entries(smpp.fields).flatMap(([name, field]) =>
          field.default === undefined ? [] : [[name, field.default]],
        ),
      )
      // What `defineKind` does, but with times that fit a test; what was looked for is what the type says.
      const provider = createSmpp({ ...defaults, ...values } as Parameters<typeof createSmpp>[0], times)
      providers.push(provider)
      return provider
    },
    async stop() {
      await Promise.all(providers.map((provider) => provider.close?.()))
      smsc.stop()
    },
  }
}
