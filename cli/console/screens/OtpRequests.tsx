import { Box } from 'ink'
import type { OtpRequest } from '../../client/resources.ts'
import { recentTime } from '../../terminal/text.ts'
import type { Column } from '../columns.ts'
import { ListTable } from '../components/ListTable.tsx'
import { Rule } from '../components/Rule.tsx'
import { LoadingOrError } from '../components/LoadingOrError.tsx'
import { useConsole } from '../console-context.ts'
import { useApplicationCalls } from '../hooks/use-application-calls.ts'
import { useApplications } from '../hooks/use-applications.ts'
import { usePersistentState } from '../hooks/use-persistent-state.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { useList } from '../hooks/use-list.ts'
import { usePolled } from '../hooks/use-polled.ts'
import { useNow } from '../hooks/use-now.ts'
import { usePhoneFormatter } from '../hooks/use-shell.ts'
import { expiryText, statusSpan } from '../lines/otp.ts'
import type { ScreenProps } from '../screen.ts'
import { sendDialog } from './otp-dialogs.ts'

const statuses = ['pending', 'verified', 'failed', 'expired', 'canceled'] as const
type Status = (typeof statuses)[number]

const newestMax = 200

/** List of the newest requests, optionally of one application or one status. */
export function OtpRequests({ width, height, open }: ScreenProps & { open(id: string): void }) {
  const { api, theme, openDialog, copy, toast } = useConsole()
  const formatPhone = usePhoneFormatter()
  const nowMs = useNow()
  const { data: applications = [], applicationName } = useApplications()
  const [appId, setAppId] = usePersistentState<string | null>('otp app', null)
  const [status, setStatus] = usePersistentState<Status | null>('otp status', null)
  const load = async () => {
    const filter = { ...(appId !== null && { appId }), ...(status !== null && { status }) }
    return (await api.asDeveloper('GET', '/v1/otp', { query: { limit: String(newestMax), ...filter } })).data
  }
  const requests = usePolled(`otp ${appId} ${status}`, load)
  const rows = requests.data ?? []
  const list = useList({
    name: 'otp',
    rows,
    height: height - 2,
    getRowId: ({ id }) => id,
    getFilterText: (request) =>
      `${request.phone} ${request.id} ${request.status} ${applicationName(request.appId)}`,
  })
  const { selected } = list
  const applicationCalls = useApplicationCalls()
  useKeys('otp', {
    open: selected === null ? undefined : () => open(selected.id),
    app:
      applications.length === 0
        ? undefined
        : () =>
            setAppId(
              nextOption(
                applications.map(({ id }) => id),
                appId,
              ),
            ),
    status: () => setStatus(nextOption(statuses, status)),
    send: applicationCalls.handler((application) => openDialog(sendDialog(application, { toast, open }))),
    copy: selected === null ? undefined : { run: () => copy(selected.id, 'request id'), label: 'copy id' },
  })

  const isUnfiltered = appId === null && status === null
  const columns: Column<OtpRequest>[] = [
    { title: 'SENT', width: 11, cell: ({ createdAt }) => recentTime(createdAt, nowMs) },
    { title: 'PHONE', width: 16, cell: ({ phone }) => formatPhone(phone) },
    { title: 'STATUS', width: 10, cell: (request) => statusSpan(request, theme) },
    { title: 'TRIES', width: 5, cell: ({ attempts, maxAttempts }) => `${attempts}/${maxAttempts}` },
    {
      title: 'APP',
      width: 8,
      grow: 1,
      maxWidth: 32,
      dropPriority: 1,
      cell: ({ appId: id }) => applicationName(id),
    },
    { title: 'EXPIRES', width: 13, dropPriority: 2, cell: (request) => expiryText(request, nowMs) },
    { title: 'REQUEST', width: 30, dropPriority: 3, cell: ({ id }) => id },
  ]
  const filters = `app: ${appId === null ? 'all' : applicationName(appId)}   status: ${status ?? 'all'}`
  const remark = rows.length === newestMax ? `the newest ${newestMax}` : ''
  return (
    <Box flexDirection="column" width={width} height={height}>
      {requests.data === undefined ? (
        <LoadingOrError polled={requests} width={width} height={height - 1} />
      ) : (
        <ListTable list={list} columns={columns} width={width} empty={isUnfiltered ? empty : emptyFiltered} />
      )}
      <Rule
        width={width}
        title={{ text: filters, paint: isUnfiltered ? theme.paint.dim : theme.paint.cyan }}
        remark={remark}
      />
    </Box>
  )
}

/** Returns the option after `current`; null after the last one, and the first one after null. */
const nextOption = <T,>(options: readonly T[], current: T | null): T | null =>
  current === null ? (options[0] ?? null) : (options[options.indexOf(current) + 1] ?? null)

const empty = ['No codes yet. Send one:', '', '  otpd otp send PHONE --env-file FILE']
const emptyFiltered = ['No matching codes. Press a or s to change the filter.']
