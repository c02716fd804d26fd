import { Box } from 'ink'
import type { OtpRequest } from '../../client/resources.ts'
import { recentTime } from '../../terminal/text.ts'
import type { Column } from '../columns.ts'
import { ListTable } from '../components/ListTable.tsx'
import { Rule } from '../components/Rule.tsx'
import { Waiting } from '../components/Waiting.tsx'
import { useConsole } from '../console-context.ts'
import { useAppCalls } from '../hooks/use-app-calls.ts'
import { useApplications } from '../hooks/use-applications.ts'
import { useKept } from '../hooks/use-persistent-state.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { useList } from '../hooks/use-list.ts'
import { useLive } from '../hooks/use-polled.ts'
import { useNow } from '../hooks/use-now.ts'
import { usePhone } from '../hooks/use-shell.ts'
import { newestRows, searchMs } from '../newest-rows.ts'
import { expiryText, statusSpan } from '../lines/otp.ts'
import type { ScreenProps } from '../screen.ts'
import { sendDialog } from './otp-dialogs.ts'

const statuses = ['pending', 'verified', 'failed', 'expired', 'canceled'] as const
type Status = (typeof statuses)[number]

const newestMax = 200

/** The newest requests, of one application or of one status where that is wanted. */
export function OtpRequests({ width, height, open }: ScreenProps & { open(id: string): void }) {
  const { api, theme, ask, copy, toast } = useConsole()
  const phoneOf = usePhone()
  const nowMs = useNow()
  const { data: applications = [], nameOf } = useApplications()
  const [appId, setAppId] = useKept<string | null>('otp app', null)
  const [status, setStatus] = useKept<Status | null>('otp status', null)
  const load = () =>
    newestRows(newestMax, (page) => {
      const query = { ...page, ...(appId !== null && { appId }), ...(status !== null && { status }) }
      return api.asDeveloper('GET', '/v1/otp', { query })
    })
  const requests = useLive(`otp ${appId} ${status}`, load, { everyMs: searchMs })
  const rows = requests.data?.rows ?? []
  const list = useList({
    name: 'otp',
    rows,
    height: height - 2,
    idOf: ({ id }) => id,
    textOf: (one) => `${one.phone} ${one.id} ${one.status} ${nameOf(one.appId)}`,
  })
  const { selected } = list
  const appCalls = useAppCalls()
  useKeys('otp', {
    open: selected === null ? undefined : () => open(selected.id),
    app:
      applications.length === 0
        ? undefined
        : () =>
            setAppId(
              next(
                applications.map(({ id }) => id),
                appId,
              ),
            ),
    status: () => setStatus(next(statuses, status)),
    send: appCalls.handler((application) => ask(sendDialog(application, { toast, open }))),
    copy: selected === null ? undefined : { run: () => copy(selected.id, 'request id'), label: 'copy id' },
  })

  const isAll = appId === null && status === null
  const columns: Column<OtpRequest>[] = [
    { title: 'SENT', width: 11, cell: ({ createdAt }) => recentTime(createdAt, nowMs) },
    { title: 'PHONE', width: 16, cell: ({ phone }) => phoneOf(phone) },
    { title: 'STATUS', width: 10, cell: (one) => statusSpan(one, theme) },
    { title: 'TRIES', width: 5, cell: ({ attempts, maxAttempts }) => `${attempts}/${maxAttempts}` },
    { title: 'APP', width: 8, grow: 1, widest: 32, spare: 1, cell: ({ appId: id }) => nameOf(id) },
    { title: 'EXPIRES', width: 13, spare: 2, cell: (one) => expiryText(one, nowMs) },
    { title: 'REQUEST', width: 30, spare: 3, cell: ({ id }) => id },
  ]
  const filters = `app ${appId === null ? 'all' : nameOf(appId)}   status ${status ?? 'all'}`
  const remark = rows.length === newestMax ? `the newest ${newestMax}` : ''
  return (
    <Box flexDirection="column" width={width} height={height}>
      {requests.data === undefined ? (
        <Waiting live={requests} width={width} height={height - 1} />
      ) : (
        <ListTable list={list} columns={columns} width={width} empty={isAll ? empty : noSuch} />
      )}
      <Rule
        width={width}
        title={{ text: filters, paint: isAll ? theme.paint.dim : theme.paint.cyan }}
        remark={remark}
      />
    </Box>
  )
}

/** The one after `current`, with none at all between the last and the first. */
const next = <T,>(all: readonly T[], current: T | null): T | null =>
  current === null ? (all[0] ?? null) : (all[all.indexOf(current) + 1] ?? null)

const empty = ['No codes yet. Send one:', '', '  otpd otp send PHONE --env-file FILE']
const noSuch = ['No such codes among the newest. a and s choose others.']
