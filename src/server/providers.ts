import { uptime } from 'node:os'
import type { Config } from '../config/config.ts'
import { createProviderHttp } from '../delivery/kit/http-client.ts'
import { providerKinds } from '../delivery/providers/kinds-list.ts'
import type { SendOutcome } from '../delivery/kit/provider.ts'
import { ServiceError } from '../domain/model/errors.ts'
import { channels, type Channel } from '../domain/model/request.ts'
import { parsePhone } from '../domain/model/phone.ts'
import { systemClock } from '../domain/model/clock.ts'

export type ConfiguredProvider = { name: string; kind: string; title: string; channels: readonly Channel[] }

/** What became of a test message. */
export type TestedProvider = {
  provider: string
  channel: Channel
  outcome: SendOutcome['kind']
  messageId: string | null
  failure: { class: string; permanent: boolean; at: string; providerCode: string | null } | null
  tookMs: number
}

const testMs = 20_000

/** The providers of a configuration, for commands: no server, no routes, no database. */
export function openProviders(config: Pick<Config, 'delivery'>, version: string) {
  const clock = systemClock(Date.now, () => performance.now(), uptime)
  const http = createProviderHttp({ version })
  const { providers } = config.delivery
  const open = ({ kind, values }: (typeof providers)[number]) => {
    const found = providerKinds.find((one) => one.kind === kind)
    if (!found) throw new Error(`there is no kind of provider ${kind}`)
    return { title: found.title, provider: found.create(values, { http, clock }) }
  }

  return {
    async list(): Promise<ConfiguredProvider[]> {
      const listed: ConfiguredProvider[] = []
      for (const one of providers) {
        const { title, provider } = open(one)
        listed.push({ name: one.name, kind: one.kind, title, channels: provider.channels })
        await provider.close?.()
      }
      return listed
    },

    /**
     * Sends one real message, which says that it is a test, with a code that opens nothing.
     *
     * @throws NOT_FOUND there is no such provider; INVALID_PHONE_NUMBER; INVALID_ARGUMENT it has no such channel
     */
    async test(name: string, phone: string, wish?: string): Promise<TestedProvider> {
      const settings = providers.find((one) => one.name === name)
      if (!settings) throw new ServiceError('NOT_FOUND', 'The configuration has no such provider.')
      const { phone: to, country } = parsePhone(phone)
      const { provider } = open(settings)
      try {
        const channel = wish === undefined ? provider.channels[0] : channels.find((one) => one === wish)
        if (!channel || !provider.channels.includes(channel)) {
          throw new ServiceError('INVALID_ARGUMENT', `It carries ${provider.channels.join(', ')}.`)
        }
        const startedAt = clock.now()
        const outcome = await provider.send(
          {
            requestId: `otp_test${startedAt.toString(36)}`,
            to,
            country,
            channel,
            text: `Test message of otpd: ${testCode} is not a code.`,
            code: testCode,
            locale: 'en',
            applicationName: 'otpd',
            validitySeconds: 300,
            callbackUrl: null,
            attempt: 1,
          },
          AbortSignal.timeout(testMs),
        )
        const tookMs = clock.now() - startedAt
        if (outcome.kind === 'accepted') {
          return {
            provider: name,
            channel,
            outcome: 'accepted',
            messageId: outcome.messageId,
            failure: null,
            tookMs,
          }
        }
        const { class: failure, permanent, at, providerCode } = outcome.failure
        const about = { class: failure, permanent, at, providerCode }
        return { provider: name, channel, outcome: outcome.kind, messageId: null, failure: about, tookMs }
      } finally {
        await provider.close?.()
      }
    },

    close: () => http.close(),
  }
}

const testCode = '000000'
