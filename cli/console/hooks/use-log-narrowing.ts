import { useConsole, type Target } from '../console-context.ts'
import { failureTypes } from '../lines/log.ts'
import { useApplications } from './use-applications.ts'
import { useKept } from './use-persistent-state.ts'
import type { LogSelection } from './use-log.ts'

/** Types that are looked for together, by the word for them. */
const kinds: Record<string, string | undefined> = {
  all: undefined,
  failures: [...failureTypes, 'otp.attempt_failed'].join(','),
  sent: 'otp.sent',
  delivery: 'otp.delivered,otp.undelivered',
  verified: 'otp.verified',
  guard: 'otp.blocked,guard.flagged',
}
const kindNames = Object.keys(kinds)

type Narrowing = { appId: string | null; kind: string; phoneEnd: string }

const everything: Narrowing = { appId: null, kind: 'all', phoneEnd: '' }

/** Which entries the log shows, and the ways to change that. */
export function useLogNarrowing(target: Target | null) {
  const { ask } = useConsole()
  const { data: applications = [], nameOf } = useApplications()
  const [kept, keep] = useKept<Narrowing>(
    'logs narrowing',
    everything,
    target?.appId === undefined ? undefined : { ...everything, appId: target.appId },
  )
  const { appId, kind, phoneEnd } = kept
  const selection: LogSelection = {
    appId: appId ?? undefined,
    type: kinds[kind],
    phoneEnd: phoneEnd === '' ? undefined : phoneEnd,
  }
  const isNarrow = appId !== null || kind !== 'all' || phoneEnd !== ''
  return {
    selection,
    isNarrow,
    words: [
      `app: ${appId === null ? 'all' : nameOf(appId)}`,
      `type: ${kind}`,
      ...(phoneEnd === '' ? [] : [`phone: ${phoneEnd}`]),
    ].join('   '),
    nextKind: () =>
      keep({ ...kept, kind: kindNames[(kindNames.indexOf(kind) + 1) % kindNames.length] ?? 'all' }),
    setApp: (id: string | null) => keep({ ...kept, appId: id }),
    ask: () =>
      ask({
        kind: 'form',
        title: 'Narrow the log',
        verb: 'show',
        fields: [
          {
            name: 'app',
            label: 'app, name or id',
            initial: appId === null ? '' : nameOf(appId),
            check: (text) => (text === '' || idOf(text) !== undefined ? null : 'there is no such one'),
          },
          { name: 'kind', label: 'type', initial: kind, choices: kindNames },
          {
            name: 'phone',
            label: 'phone ends in',
            initial: phoneEnd,
            check: (text) => (/^(\+?\d{2,15})?$/.test(text) ? null : 'two digits or more'),
          },
        ],
        act: async ({ app = '', kind: chosen = 'all', phone = '' }) =>
          keep({ appId: idOf(app) ?? null, kind: chosen, phoneEnd: phone }),
      }),
  }

  function idOf(text: string) {
    return applications.find(({ id, name }) => id === text || name === text)?.id
  }
}
