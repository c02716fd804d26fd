import { Box } from 'ink'
import { useState } from 'react'
import { listGuardRules } from '../../client/find.ts'
import type { GuardListRule, GuardState, LogEntry } from '../../client/resources.ts'
import { recentTime, formatTimeUntil, truncate } from '../../terminal/text.ts'
import type { Column } from '../columns.ts'
import { Lines } from '../components/Lines.tsx'
import { ListTable } from '../components/ListTable.tsx'
import { LoadingOrError } from '../components/LoadingOrError.tsx'
import { Rule } from '../components/Rule.tsx'
import { useConsole } from '../console-context.ts'
import { useApplications } from '../hooks/use-applications.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { useList } from '../hooks/use-list.ts'
import { useNow } from '../hooks/use-now.ts'
import { usePolled } from '../hooks/use-polled.ts'
import { useScroll } from '../hooks/use-scroll.ts'
import { useOnlyEnvironment, usePhoneFormatter } from '../hooks/use-shell.ts'
import { typeSpan, linkedRequest } from '../lines/log.ts'
import { wrap, type Line } from '../spans.ts'
import type { Screen, ScreenProps } from '../screen.ts'
import type { Theme } from '../theme.ts'
import { addRuleDialog, removeRuleDialog } from './guard-dialogs.ts'
import { useResource } from '../hooks/use-resource.ts'

const guardTypes = 'otp.blocked,guard.flagged,guard.alert,message.undelivered'

/** Screen with the guard against SMS pumping: its rules, its alerts, and the messages that it flagged or blocked. */
export const guardScreen: Screen = {
  title: 'Guard',
  commands: [
    'otpd guard status',
    'otpd guard rules',
    'otpd guard allow PHONE --for 24h --app APP',
    'otpd guard deny PREFIX',
    `otpd logs --type ${guardTypes}`,
  ],
  View: GuardView,
}

/** Tells an entry of the guard from that of a code of another system which a provider or a network refused. */
const isOfGuard = ({ type, detail }: LogEntry) =>
  type !== 'message.undelivered' || detail?.startsWith('blocked ') === true

function GuardView({ width, height }: ScreenProps) {
  const [isOpen, setOpen] = useState(false)
  const { api } = useConsole()
  const guard = useResource('/v1/guard', {}, { intervalMs: 5000 })
  const rules = usePolled('guard rules', () => listGuardRules(api), { intervalMs: 5000 })
  if (guard.data === undefined) return <LoadingOrError polled={guard} width={width} height={height} />
  const shown = { guard: guard.data, ownRules: rules.data ?? [], width, height }
  return isOpen ? (
    <GuardRules {...shown} close={() => setOpen(false)} />
  ) : (
    <GuardDecisions {...shown} open={() => setOpen(true)} />
  )
}

type Props = Pick<ScreenProps, 'width' | 'height'> & { guard: GuardState; ownRules: readonly GuardListRule[] }

/** The rules in full: a small screen has no room for them next to the decisions. */
function GuardRules({ guard, ownRules, width, height, close }: Props & { close(): void }) {
  const { theme } = useConsole()
  const nowMs = useNow()
  const { applicationName } = useApplications()
  const formatPhone = usePhoneFormatter()
  const ownLines = ruleLines(ownRules, { theme, nowMs, applicationName, formatPhone }, Infinity)
  const lines = guardLines(guard, { ownLines, width, theme, nowMs })
  const { visible, handlers } = useScroll(lines, { width, height })
  useKeys('list', handlers)
  useKeys('detail', { back: close })
  return <Lines lines={visible} width={width} height={height} />
}

/** The rules, shortened to the room they get, and what they decided. */
function GuardDecisions({ guard, ownRules, width, height, open }: Props & { open(): void }) {
  const console = useConsole()
  const { theme, go, openDialog } = console
  const { applicationName, applicationCell } = useApplications()
  const formatPhone = usePhoneFormatter()
  const nowMs = useNow()
  const environment = useOnlyEnvironment()
  const query = { type: guardTypes, limit: '200', order: 'desc', environment } as const
  const decisions = useResource('/v1/logs', { query })
  const entries = decisions.data?.filter(isOfGuard) ?? []
  const ownLines = ruleLines(ownRules, { theme, nowMs, applicationName, formatPhone }, rulesMax)
  // Half of the screen at most, or what the decisions leave: the rules do not change, and the decisions do.
  const roomForRules = Math.max(3, Math.floor(height / 2), height - 4 - entries.length)
  const drawRules = (isShort: boolean) => guardLines(guard, { ownLines, width, theme, nowMs, isShort })
  const lines = drawRules(false)
  const top = lines.length <= roomForRules ? lines : firstLines(drawRules(true), roomForRules, theme)
  const list = useList({
    name: 'guard',
    rows: entries,
    height: height - top.length - 2,
    getRowId: ({ id }) => id,
    getFilterText: ({ type, phone, detail, appId }) =>
      [type, phone, detail, applicationName(appId)].join(' '),
  })
  const requestId = linkedRequest(list.selected)
  useKeys('guard', {
    open: requestId === null ? undefined : () => go('otp', { requestId }),
    allow: () => openDialog(addRuleDialog(console, 'allow', list.selected?.phone ?? '')),
    deny: () => openDialog(addRuleDialog(console, 'deny', list.selected?.phone ?? '')),
    remove:
      ownRules.length === 0
        ? undefined
        : () => openDialog(removeRuleDialog(console, ownRules, formatPhone, applicationName)),
    rules: open,
  })
  const columns: Column<LogEntry>[] = [
    { title: 'TIME', width: 11, cell: ({ at }) => recentTime(at, nowMs) },
    { title: 'DECISION', width: 15, cell: (entry) => typeSpan(entry, theme) },
    { title: 'PHONE', width: 16, cell: ({ phone }) => formatPhone(phone) },
    { title: 'RULE', width: 20, grow: 2, maxWidth: 60, cell: ({ detail }) => detail ?? '' },
    { title: 'APP', width: 10, grow: 1, maxWidth: 40, dropPriority: 1, cell: applicationCell },
    { title: 'REQUEST', width: 30, dropPriority: 2, cell: (entry) => entry.requestId ?? '' },
  ]
  return (
    <Box flexDirection="column" width={width} height={height}>
      <Lines lines={top} width={width} />
      <Rule width={width} title="Flagged and blocked" />
      {decisions.data === undefined ? (
        <LoadingOrError polled={decisions} width={width} height={height - top.length - 1} />
      ) : (
        <ListTable
          list={list}
          columns={columns}
          width={width}
          empty={['Nothing was flagged or blocked, as far as the log is kept.']}
        />
      )}
    </Box>
  )
}

/** Returns the lines that fit; if some do not, the last one says how many. */
const firstLines = (lines: readonly Line[], room: number, { paint }: Theme): Line[] =>
  lines.length <= room
    ? [...lines]
    : [...lines.slice(0, room - 1), { text: ` ${lines.length - room} more lines: press t`, paint: paint.dim }]

const modes: Record<GuardState['mode'], string> = {
  off: 'off: nothing is counted',
  monitor: 'monitor: every code is sent, and the log shows which would be blocked',
  enforce: 'enforce: messages that break a rule are blocked',
}

const ruleWidth = 20
/** Countries that are shown: those that spent most of their allowances. */
const allowancesMax = 5

/**
 * Lists the state of the guard: mode, alerts, allowances and rules.
 *
 * @param screen.ownLines those of the developer's own rules
 * @param screen.isShort each rule gets one line, which ends where the screen ends
 */
function guardLines(
  { mode, challenge, rules, allowances = [], relays = [], pool, alerts }: GuardState,
  screen: { ownLines: readonly Line[]; width: number; theme: Theme; nowMs: number; isShort?: boolean },
): Line[] {
  const { ownLines, width, isShort = false } = screen
  const { paint, status, symbols } = screen.theme
  const room = width - ruleWidth - 3
  const paintOf = (share: number) => (share >= 1 ? paint.red : share >= 0.5 ? paint.yellow : undefined)
  const limitLines = (limit: string) =>
    isShort ? [truncate(limit, room, symbols.ellipsis)] : wrap(limit, room)
  const poolLine = ({ unverified, allowance }: NonNullable<typeof pool>): Line => [
    { text: ` ${'pool'.padEnd(ruleWidth)}  `, paint: paint.dim },
    { text: `${unverified} of ${allowance}`, paint: paintOf(unverified / allowance) },
    { text: ' of all countries beyond their own allowances', paint: paint.dim },
  ]
  const tone = mode === 'enforce' ? 'good' : mode === 'monitor' ? 'warning' : 'off'
  const limitRows = rules.flatMap(({ rule, limit }): Line[] =>
    limitLines(limit ?? 'off').map((text, index) => [
      { text: ` ${(index === 0 ? rule : '').padEnd(ruleWidth)}  `, paint: paint.dim },
      { text, paint: limit === null ? paint.dim : undefined },
    ]),
  )
  return [
    [' ', status(tone, modes[mode])],
    ...(challenge && mode === 'enforce'
      ? [[` challenge ${challenge}: users who pass it have three times the allowances`]]
      : []),
    ...alertLines(alerts, screen),
    '',
    ...allowances.slice(0, allowancesMax).map(({ country, verifiedPhones, unverified, allowance }): Line => [
      { text: ` ${country.padEnd(ruleWidth)}  `, paint: paint.dim },
      { text: `${unverified} of ${allowance} unverified`, paint: paintOf(unverified / allowance) },
      { text: `, ${verifiedPhones} verified ${verifiedPhones === 1 ? 'phone' : 'phones'}`, paint: paint.dim },
    ]),
    ...relays.slice(0, allowancesMax).map(({ country, unverified, allowance }): Line => [
      { text: ` ${country.padEnd(ruleWidth)}  `, paint: paint.dim },
      { text: `${unverified} of ${allowance}`, paint: paintOf(unverified / allowance) },
      { text: ' codes of other systems', paint: paint.dim },
    ]),
    ...(pool === undefined ? [] : [poolLine(pool), '']),
    ...ownLines,
    ...limitRows,
    '',
  ]
}

/** Alerts that are not of a country. */
const alertTexts: Record<string, string> = {
  pool: 'The pool of all countries is spent',
  relays: 'There are more codes of other systems than usual',
}

/** Lines with the alerts. On a screen that has no room for all lines, the countries share one. */
function alertLines(
  alerts: GuardState['alerts'],
  screen: { theme: Theme; nowMs: number; isShort?: boolean },
): Line[] {
  const { theme, nowMs, isShort = false } = screen
  const countries = alerts.map(({ country }) => country).filter((country) => !(country in alertTexts))
  const isShared = isShort && countries.length > 1
  const own = isShared ? alerts.filter(({ country }) => country in alertTexts) : alerts
  const shared = `${countries.length} countries have more unverified messages than usual: ${countries.join(', ')}`
  return [
    ...(isShared ? [[' ', theme.status('bad', shared)]] : []),
    ...own.map(({ country, until }): Line => [
      ' ',
      theme.status('bad', alertTexts[country] ?? `${country} has more unverified messages than usual`),
      { text: `  alert ends ${formatTimeUntil(until, nowMs)}`, paint: theme.paint.dim },
    ]),
  ]
}

/** Rules that are shown: the newest. */
const rulesMax = 5

/** Lines with the developer's rules that allow and deny. */
function ruleLines(
  rules: readonly GuardListRule[],
  {
    theme: { paint },
    nowMs,
    applicationName,
    formatPhone,
  }: {
    theme: Theme
    nowMs: number
    applicationName(appId: string | null): string
    formatPhone(phone: string | null): string
  },
  shownMax: number,
): Line[] {
  if (rules.length === 0) return []
  const more = rules.length - shownMax
  return [
    ...rules.slice(0, shownMax).map(({ effect, target, value, appId, expiresAt }): Line => [
      { text: ` ${effect.padEnd(ruleWidth)}  `, paint: effect === 'deny' ? paint.red : paint.green },
      `${target} ${target === 'phone' ? formatPhone(value) : value}`,
      {
        text: `${appId === null ? '' : `, ${applicationName(appId)}`}${expiresAt === null ? '' : `, ends ${formatTimeUntil(expiresAt, nowMs)}`}`,
        paint: paint.dim,
      },
    ]),
    ...(more > 0 ? [[{ text: ` ${more} more: otpd guard rules`, paint: paint.dim }]] : []),
    '',
  ]
}
