import { findSettingFaults } from '../../src/delivery/kit/provider-kinds.ts'
import type { Provider } from '../../src/delivery/kit/provider.ts'
import { createSmpp, smpp } from '../../src/delivery/providers/smpp.ts'
import { startSmsc } from './smsc.ts'

const smppTimes = { bindMs: 30_000, responseMs: 1_000, backoffMinMs: 5, backoffMaxMs: 20 }
/** Backoff longer than any test. */
export const longPause = { ...smppTimes, backoffMinMs: 600_000, backoffMaxMs: 600_000 }

export const smppValues = {
  host: '127.0.0.1',
  systemId: 'otpd',
  password: 'secret',
  from: 'ACME',
  tls: 'off',
}

export type SmppTest = Awaited<ReturnType<typeof startSmppTest>>

/** Starts an SMSC and creates SMPP providers that connect to it. */
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
      // Does the work of `defineKind`, but with short times. `findSettingFaults` has checked what the cast asserts.
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
