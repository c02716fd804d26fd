import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { DeveloperGuardStatus, GuardStatusService } from '../../domain/guard/status.ts'
import type { ProviderStatus, ProviderStatusService } from '../../domain/otp/provider-status.ts'
import { guardRules } from '../../domain/model/guard.ts'
import { channels } from '../../domain/model/request.ts'
import { formatTime } from '../pagination.ts'
import { requireDeveloper, type AuthenticateDeveloper } from '../require-developer.ts'
import { consoleErrors, data, nullable, object, oneOf, timestamp } from '../schemas.ts'

const provider = object(
  {
    name: Type.String({ description: 'Name in the configuration, as requests show it in `provider`.' }),
    kind: Type.String({ description: 'Kind in the configuration, such as `twilio-sms`.' }),
    title: Type.String({ description: 'Name of the service.' }),
    channels: Type.Array(oneOf(channels), { description: 'Channels that it sends through.' }),
    circuit: {
      ...oneOf(['closed', 'open']),
      description: '`open` while the provider fails: messages take the next one of their route.',
    },
    failure: nullable(
      Type.String({ description: 'Class of the failure; null while the circuit is closed.' }),
    ),
    retryAt: nullable({
      ...timestamp,
      description: 'When it is tried again; null while the circuit is closed.',
    }),
  },
  'Provider',
)

const presentProvider = ({ name, kind, title, channels: ownChannels, openCircuit }: ProviderStatus) => ({
  name,
  kind,
  title,
  channels: [...ownChannels],
  circuit: openCircuit === null ? ('closed' as const) : ('open' as const),
  failure: openCircuit?.failure ?? null,
  retryAt: openCircuit === null ? null : formatTime(openCircuit.openUntil),
})

const guard = object(
  {
    mode: {
      ...oneOf(['off', 'monitor', 'enforce']),
      description: '`monitor` sends every message and logs which it would block; `enforce` blocks them.',
    },
    rules: Type.Array(
      object({
        rule: { ...oneOf(guardRules), description: 'Name of the rule, as log entries show it.' },
        limit: nullable(Type.String({ description: 'Limit of the rule in words; null if it is off.' })),
      }),
    ),
    alerts: Type.Array(
      object({
        country: Type.String({ description: 'ISO code of the country.' }),
        until: { ...timestamp, description: 'When the alert ends.' },
      }),
      {
        description:
          'Countries where your applications verify less than half as many codes as in the 14 days before.',
      },
    ),
  },
  'Guard',
)

const presentGuard = ({ mode, rules, alerts }: DeveloperGuardStatus) => ({
  mode,
  rules,
  alerts: alerts.map(({ country, until }) => ({ country, until: formatTime(until) })),
})

/** Routes that show how messages are delivered: the operator's providers, and the guard against SMS pumping. */
export function deliveryStatusRoutes(services: {
  authenticateDeveloper: AuthenticateDeveloper
  guardStatus: GuardStatusService
  providerStatus: ProviderStatusService
}) {
  const detail = { tags: ['Delivery'], security: [{ console: [] }] }
  return new Elysia({ prefix: '/v1' })
    .use(requireDeveloper(services.authenticateDeveloper))
    .get('/providers', async () => ({ data: (await services.providerStatus.list()).map(presentProvider) }), {
      response: { 200: data(Type.Array(provider)), ...consoleErrors },
      detail: {
        ...detail,
        operationId: 'listProviders',
        summary: 'List the providers and their circuits',
        description:
          'Lists the providers that the operator configured, for the channels of your messages. Settings and credentials are never part of it.',
      },
    })
    .get(
      '/guard',
      async ({ developer }) => ({ data: presentGuard(await services.guardStatus.read(developer.id)) }),
      {
        response: { 200: data(guard), ...consoleErrors },
        detail: {
          ...detail,
          operationId: 'getGuard',
          summary: 'Get the rules and alerts of the guard',
          description:
            'Returns how the guard against SMS pumping judges your messages, and the countries where fewer of your codes are verified than usual.',
        },
      },
    )
}
