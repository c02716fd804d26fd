import { useConsole, type Choice } from '../console-context.ts'
import { useApplications } from '../hooks/use-applications.ts'
import { useOnlyEnvironment, usePhoneFormatter } from '../hooks/use-shell.ts'
import { useResource } from '../hooks/use-resource.ts'
import { formatKey } from '../key-names.ts'
import type { ActiveBinding } from '../key-router.ts'
import { screenDigit, screenNames } from '../keymap.ts'
import { readPhone } from '../request-search.ts'
import type { ScreenTitles } from '../screen.ts'
import { PickBox } from './PickBox.tsx'

type Props = {
  screens: ScreenTitles
  /** The keys that were active when the palette was opened. */
  bindings: readonly ActiveBinding[]
  close(): void
  width: number
  height: number
}

/** Sections whose keys only move around, which is no use by name. */
const movingSections = new Set(['list', 'move', 'screens', 'filter', 'help'])

/** Command palette: screens, actions of the current screen, applications, and requests by id or phone. */
export function Palette({ screens, bindings, ...box }: Props) {
  const { go, keys, theme, findRequests } = useConsole()
  const { data: applications = [], applicationName } = useApplications()
  const formatPhone = usePhoneFormatter()
  const environment = useOnlyEnvironment()
  const call = { query: { limit: '200', environment } }
  const { data: requests = [] } = useResource('/v1/otp', call, { intervalMs: 30_000 })
  const choices: Choice[] = [
    ...screenNames.map((name): Choice => ({
      kind: 'screen',
      label: screens[name].title,
      detail: screenDigit(name),
      run: () => go(name),
    })),
    ...bindings.flatMap(({ section, action, keys: [key = ''], label, about, unavailable }): Choice[] =>
      movingSections.has(section) || action === 'palette'
        ? []
        : [
            {
              kind: 'action',
              label: about ?? label,
              detail: formatKey(key, theme.isAscii),
              unavailable,
              run: () => keys.press(key),
            },
          ],
    ),
    ...applications.map(({ id, name, environment: ofApp }): Choice => ({
      kind: 'application',
      label: name,
      detail: ofApp === 'live' ? 'LIVE' : 'test',
      run: () => go('apps', { appId: id }),
    })),
    ...requests.map(({ id, phone, status, appId }): Choice => ({
      kind: 'request',
      label: formatPhone(phone),
      detail: `${status}  ${applicationName(appId)}  ${id}`,
      search: phone,
      run: () => go('otp', { requestId: id }),
    })),
  ]
  return <PickBox {...box} title="Go to" choices={choices} choicesFor={choicesFor} />

  /** A request is found by its whole number or id also if it is not among the newest. */
  function choicesFor(text: string): Choice[] {
    if (readPhone(text) !== null)
      return [{ kind: 'search', label: `requests of ${text.trim()}`, run: () => findRequests(text.trim()) }]
    const requestId = /otp_[0-9a-z]{26}/.exec(text)?.[0]
    return requestId === undefined
      ? []
      : [{ kind: 'request', label: requestId, run: () => go('otp', { requestId }) }]
  }
}
