import type { Config } from '../config/config.ts'
import { attemptMsMax } from '../domain/model/message.ts'
import { createProviderHttp } from '../delivery/kit/http-client.ts'
import { enabledChannels } from '../delivery/kit/provider-kinds.ts'
import { providerKinds } from '../delivery/providers/all-provider-kinds.ts'
import type { AccountCheck } from '../delivery/kit/account-check.ts'
import type { SendOutcome } from '../delivery/kit/provider.ts'
import { ServiceError } from '../domain/model/errors.ts'
import type { Channel } from '../domain/model/request.ts'
import { parsePhone } from '../domain/model/phone.ts'
import { systemClock, type Clock } from '../domain/model/clock.ts'
import { systemWorld } from '../world/system.ts'

export type ConfiguredProvider = {
  name: string
  kind: string
  title: string
  channels: readonly Channel[]
  /** Whether it takes delivery receipts over HTTP with these settings. Absent in the record of a server of an earlier version. */
  takesReceipts?: boolean
}

/** Result of a test message. */
export type ProviderTestResult = {
  provider: string
  channel: Channel
  outcome: SendOutcome['kind']
  messageId: string | null
  failure: {
    class: string
    permanent: boolean
    at: string
    providerCode: string | null
    /** First 200 characters of what the provider said, redacted. */
    reply: string | null
  } | null
  tookMs: number
  /** Whether a send would have given up before: it waits 8 s, and then counts the message as uncertain. */
  late: boolean
}

const testTimeoutMs = 20_000

/** Opens the configured providers for commands, without server, routes or database. */
export function openProviders(
  config: Pick<Config, 'delivery'>,
  version: string,
  clock: Clock = systemClock(systemWorld.now, systemWorld.monotonic, systemWorld.uptimeSeconds),
) {
  const http = createProviderHttp({ version })
  const { providers } = config.delivery
  const openProvider = ({ kind, values }: (typeof providers)[number]) => {
    const providerKind = providerKinds.find((candidate) => candidate.kind === kind)
    if (!providerKind) throw new Error(`unknown provider kind: ${kind}`)
    return {
      title: providerKind.title,
      channels: enabledChannels(providerKind, values),
      provider: providerKind.create(values, { http, clock, feedback: false, world: systemWorld }),
    }
  }

  return {
    /** Lists the providers in the order of the file. */
    async list(): Promise<ConfiguredProvider[]> {
      const result: ConfiguredProvider[] = []
      for (const settings of providers) {
        const { title, channels, provider } = openProvider(settings)
        const { name, kind } = settings
        const takesReceipts = provider.readCallback !== undefined
        result.push({ name, kind, title, channels, takesReceipts })
        await provider.close?.()
      }
      return result
    },

    /**
     * Sends one real message that says it is a test; its code is not valid anywhere.
     *
     * @param channelName default: the provider's first channel
     * @throws NOT_FOUND when there is no such provider; INVALID_PHONE_NUMBER; INVALID_ARGUMENT when the provider does not
     *   support the channel
     */
    async test(name: string, phone: string, channelName?: string): Promise<ProviderTestResult> {
      const settings = providers.find((candidate) => candidate.name === name)
      if (!settings)
        throw new ServiceError('NOT_FOUND', `No provider is named ${name}. ${listNames(providers)}`)
      const { phone: to, country } = parsePhone(phone)
      const { channels, provider } = openProvider(settings)
      try {
        const channel = channels.find((candidate) => candidate === (channelName ?? channels[0]))
        if (!channel) throw new ServiceError('INVALID_ARGUMENT', `${name} supports ${channels.join(', ')}.`)
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
            messageNumber: 0,
            attempt: 1,
          },
          AbortSignal.timeout(testTimeoutMs),
        )
        const tookMs = clock.now() - startedAt
        const common = { provider: name, channel, tookMs, late: tookMs > attemptMsMax }
        if (outcome.kind === 'accepted')
          return { ...common, outcome: outcome.kind, messageId: outcome.messageId, failure: null }
        const { class: failureClass, permanent, at, providerCode, reply = null } = outcome.failure
        const failure = { class: failureClass, permanent, at, providerCode, reply }
        return { ...common, outcome: outcome.kind, messageId: null, failure }
      } finally {
        await provider.close?.()
      }
    },

    /** Tries an account by a look-up that sends nothing; undefined if its kind has none. */
    async check(name: string): Promise<AccountCheck | undefined> {
      const settings = providers.find((candidate) => candidate.name === name)
      const provider = settings && openProvider(settings).provider
      const check = await provider?.checkAccount?.(systemWorld.timers.timeoutSignal(testTimeoutMs))
      await provider?.close?.()
      return check
    },

    close: () => http.close(),
  }
}

const listNames = (providers: ReadonlyArray<{ name: string }>) =>
  providers.length === 0
    ? 'None is configured.'
    : `Configured: ${providers.map(({ name }) => name).join(', ')}.`

const testCode = '000000'
