import { useConsole, type Target } from '../console-context.ts'
import { typesByKind, type LogQuery } from '../entry-search.ts'
import { useApplications } from './use-applications.ts'
import { usePersistentState } from './use-persistent-state.ts'

const kindNames = Object.keys(typesByKind)

type LogFilter = { appId: string | null; kind: string; phoneEnd: string }

const noFilter: LogFilter = { appId: null, kind: 'all', phoneEnd: '' }

/** Manages which entries the log shows. */
export function useLogFilter(target: Target | null) {
  const { openDialog } = useConsole()
  const { data: applications = [], applicationName } = useApplications()
  const [filter, setFilter] = usePersistentState<LogFilter>(
    'logs filter',
    noFilter,
    target?.appId === undefined ? undefined : { ...noFilter, appId: target.appId },
  )
  const { appId, kind, phoneEnd } = filter
  const selection: LogQuery = {
    appId: appId ?? undefined,
    type: typesByKind[kind],
    phoneEnd: phoneEnd === '' ? undefined : phoneEnd,
  }
  const isFiltered = appId !== null || kind !== 'all' || phoneEnd !== ''
  return {
    selection,
    isFiltered,
    summary: [
      `app: ${appId === null ? 'all' : applicationName(appId)}`,
      `type: ${kind}`,
      ...(phoneEnd === '' ? [] : [`phone: ${phoneEnd}`]),
    ].join('   '),
    nextKind: () =>
      setFilter({ ...filter, kind: kindNames[(kindNames.indexOf(kind) + 1) % kindNames.length] ?? 'all' }),
    setApp: (id: string | null) => setFilter({ ...filter, appId: id }),
    openFilterDialog: () =>
      openDialog({
        kind: 'form',
        title: 'Filter the log',
        verb: 'apply',
        fields: [
          {
            name: 'app',
            label: 'app name or id',
            initial: appId === null ? '' : applicationName(appId),
            check: (text) => (text === '' || findAppId(text) !== undefined ? null : 'no such application'),
          },
          { name: 'kind', label: 'type', initial: kind, choices: kindNames },
          {
            name: 'phone',
            label: 'phone ends in',
            initial: phoneEnd,
            check: (text) => (/^(\+?\d{2,15})?$/.test(text) ? null : 'at least 2 digits'),
          },
        ],
        submit: async ({ app = '', kind: chosenKind = 'all', phone = '' }) =>
          setFilter({ appId: findAppId(app) ?? null, kind: chosenKind, phoneEnd: phone }),
      }),
  }

  function findAppId(text: string) {
    return applications.find(({ id, name }) => id === text || name === text)?.id
  }
}
